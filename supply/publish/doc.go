// Package publish is about an image that is about to be written: where it goes, who signs it, which documents are beside
// it, and the files about it. [Options] check themselves, with errors that name the field ([fault.FieldError]).
package publish
