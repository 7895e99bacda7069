package main

import (
	"errors"

	"github.com/operator-bindery/bindery/mirror/inventory"
)

func readInventory(string) (*inventory.Inventory, error) { return nil, errors.New("x") }
