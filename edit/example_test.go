package edit_test

import (
	"context"
	"fmt"
	"log"
	"os"

	"github.com/operator-bindery/bindery/declcfg"
	"github.com/operator-bindery/bindery/edit"
)

// A catalog with some packages of another one.
func ExamplePrune() {
	catalog, err := declcfg.Load(context.Background(), os.DirFS("../testdata/fbc/mini"), declcfg.LoadOptions{})
	if err != nil {
		log.Fatal(err)
	}
	after, account, err := edit.Prune(catalog, []string{"kairos-operator", "trident-operator"})
	if err != nil {
		log.Fatal(err)
	}
	for _, p := range after.Packages {
		fmt.Println("left:", p.Name)
	}
	fmt.Println(len(account.Changes), "changes, the first:", account.Changes[0].Action, account.Changes[0].Package)
	// Output:
	// left: kairos-operator
	// left: trident-operator
	// 52 changes, the first: removed ecr-secret-operator
}
