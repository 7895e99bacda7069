// Package jsonscan reads JSON text without decoding it: it finds the ends of strings and values, and the members and
// elements of collections. It does not validate: untrusted input must be validated first (package canon), or a failure
// must lead to encoding/json.
//
//	StringEnd, ValueEnd, SkipSpace    offsets in a text
//	End                               the end of a value that arrives in pieces
//	Members, Elements, Member, Text   compact text with sorted keys, as package canon writes it
//	Scanner                           compact text, one value after the other
//
// It replaces jsontext.Decoder, which reads token by token with a state machine and validates the grammar and the UTF-8
// of every byte again. Most bytes of a catalog are in long strings (descriptions, schemas, base64) that are skipped:
// searching memory for the closing quote does that 2.5 times faster (BenchmarkMembers against BenchmarkMembersLibrary).
package jsonscan
