// Package manual reads the pages of the documentation (README, CONTRIBUTING, docs, deploy) for tests: headings with
// their anchors, links, and blocks of code with their language. It knows the part of Markdown that these pages use:
// headings with #, fenced and indented blocks, links in brackets and parentheses.
package manual
