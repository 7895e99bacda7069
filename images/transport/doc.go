// Package transport has the kinds of places that images are in, such as registries and layouts: how images are named in
// them, how they are opened and written, and what the places can do. It is a table, which a program gives to its
// client:
//
//	transports := append(images.BuiltIn(), mine)
//	client, err := images.NewClient(images.ClientOptions{Transports: transports})
//
// Nothing is registered anywhere else: a row makes a transport one of every command and function.
package transport
