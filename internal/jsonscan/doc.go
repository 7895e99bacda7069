// Package jsonscan looks into JSON text without decoding it: it finds the ends of strings and values, and the members and
// elements of collections. Nothing is checked but what has to be; what reads input from outside has the text checked first
// (package canon) or takes a failure as "decode it with encoding/json".
//
//	StringEnd, ValueEnd, SkipSpace    offsets in a text
//	End                               the end of a value that arrives in pieces
//	Members, Elements, Member, Text   compact text with sorted keys, as package canon writes it
//	Scanner                           compact text, one value after the other
//
// It replaces jsontext.Decoder, which reads token by token with a state machine and checks the grammar and the UTF-8 of
// every byte once more. Most of a catalog are long strings (descriptions, schemas, base64) that are only passed over: a
// memory search for the quote does that 2.5 times faster (BenchmarkMembers against BenchmarkMembersLibrary).
package jsonscan
