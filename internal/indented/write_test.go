package indented_test

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"runtime"
	"strings"
	"testing"

	"github.com/operator-bindery/bindery/internal/indented"
)

type item struct {
	Name string           `json:"name"`
	List []string         `json:"list,omitempty"`
	Sub  map[string][]int `json:"items,omitempty"`
}

type own []string

func (o own) MarshalJSON() ([]byte, error) { return json.Marshal(len(o)) }

type report struct {
	Before  string   `json:"before"`
	Items   []item   `json:"items"`
	Texts   []string `json:"texts,omitempty"`
	Ptrs    []*item  `json:"ptrs"`
	Bytes   []byte   `json:"bytes"`
	Left    []item   `json:"-"`
	Unnamed []item
	Own     own `json:"own"`
	after   []item
	Sum     map[string]int `json:"sum"`
}

// Items of long lists that are written one by one are the text of encoding/json.
func TestWriteIsTheTextOfTheValue(t *testing.T) {
	for name, v := range map[string]any{
		"nothing": &report{}, "not a struct": []item{{Name: "a"}}, "nil": nil, "a nil pointer": (*report)(nil),
		"short":      &report{Items: make([]item, 3)},
		"a pointer":  many(500),
		"no pointer": *many(500),
		"at bounds":  many(64),
	} {
		t.Run(name, func(t *testing.T) {
			want, err := json.MarshalIndent(v, "", "  ")
			if err != nil {
				t.Fatal(err)
			}
			var got bytes.Buffer
			if err := indented.Write(&got, v, "  ", json.Marshal); err != nil || got.String() != string(want)+"\n" {
				t.Errorf("%v, got\n%.3000s\nwant\n%.3000s", err, got.String(), want)
			}
		})
	}
}

func many(n int) *report {
	r := &report{Before: "\n  \"items\": [\n", Bytes: make([]byte, 1000), Sum: map[string]int{"items": 1}}
	for i := range n {
		one := item{Name: fmt.Sprint("<a> ", i), List: []string{"]", "x"}, Sub: map[string][]int{"items": {1, 2}}}
		r.Items, r.Texts = append(r.Items, one), append(r.Texts, "\n  ]")
		r.Ptrs = append(r.Ptrs, nil, &one)
		r.Left, r.Unnamed, r.after, r.Own = r.Items, r.Items, r.Items, r.Texts
	}
	return r
}

func TestErrorsOfWrite(t *testing.T) {
	nested := strings.Repeat("[", 90) + strings.Repeat("1,", 1<<16) + "1" + strings.Repeat("]", 90)
	deep := struct {
		Items []json.RawMessage `json:"items"`
	}{}
	for range 100 {
		deep.Items = append(deep.Items, json.RawMessage(nested))
	}
	if err := indented.Write(io.Discard, deep, "    ", json.Marshal); !errors.Is(err, indented.ErrTooLong) {
		t.Errorf("a list of items that become many times as long: %v", err)
	}
	failed := errors.New("full")
	if err := indented.Write(failing{failed}, many(100), " ", json.Marshal); !errors.Is(err, failed) {
		t.Error(err)
	}
}

type failing struct{ error }

func (f failing) Write([]byte) (int, error) { return 0, f.error }

// The memory for the text of a long list is that of one item.
func TestMemoryOfWrite(t *testing.T) {
	r := &report{Items: make([]item, 1<<16)}
	for i := range r.Items {
		r.Items[i].Name = strings.Repeat("x", 1000)
	}
	var most, now runtime.MemStats
	runtime.GC()
	runtime.ReadMemStats(&now)
	before := now.HeapAlloc
	n := 0
	w := writerFunc(func(text []byte) (int, error) {
		if n++; n%8192 == 0 {
			runtime.GC()
			runtime.ReadMemStats(&now)
			most.HeapAlloc = max(most.HeapAlloc, now.HeapAlloc)
		}
		return len(text), nil
	})
	if err := indented.Write(w, r, "  ", json.Marshal); err != nil {
		t.Fatal(err)
	}
	if more := int64(most.HeapAlloc) - int64(before); n < 1<<16 || more > 1<<20 {
		t.Errorf("%d bytes more in %d writes", more, n)
	}
}

type writerFunc func([]byte) (int, error)

func (f writerFunc) Write(text []byte) (int, error) { return f(text) }
