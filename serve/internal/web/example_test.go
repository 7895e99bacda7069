package web_test

import (
	"context"
	"fmt"
	"log"
	"log/slog"
	"net/http/httptest"
	"os"

	"github.com/operator-bindery/bindery/declcfg"
	"github.com/operator-bindery/bindery/serve/internal/web"
)

// A site answers as catalogd does, once it has the content of a catalog.
func ExampleSite() {
	ctx := context.Background()
	w, err := web.NewWriter(slog.New(slog.DiscardHandler))
	if err != nil {
		log.Fatal(err)
	}
	for b, err := range declcfg.Stream(ctx, os.DirFS("../../../testdata/fbc/mini"), declcfg.LoadOptions{}, nil) {
		if err == nil {
			err = w.Add(b)
		}
		if err != nil {
			log.Fatal(err)
		}
	}
	content, err := w.Finish(ctx)
	if err != nil {
		log.Fatal(err)
	}
	site := web.NewSite("mini", slog.New(slog.DiscardHandler))
	defer site.Close()
	site.SetContent(content)
	answer := httptest.NewRecorder()
	site.ServeHTTP(answer, httptest.NewRequest("GET", "/api/v1/all", nil))
	fmt.Println(answer.Code, answer.Header().Get("Content-Type"))
	// Output:
	// 200 application/jsonl
}
