package main

import (
	"context"
	"errors"
	"fmt"
	"strings"

	"github.com/opencontainers/go-digest"
	v1 "github.com/opencontainers/image-spec/specs-go/v1"
	"github.com/urfave/cli/v2"

	"github.com/operator-bindery/bindery/cmd/internal/cmdline"
	"github.com/operator-bindery/bindery/images/referrers"
	"github.com/operator-bindery/bindery/internal/printable"
)

func (p *program) treeCommand() *cli.Command {
	return &cli.Command{
		Name:      "tree",
		Usage:     "show what hangs on an image: signatures, attestations, SBOMs",
		ArgsUsage: "IMAGE",
		Description: "Shows the signatures (.sig), attestations (.att) and SBOMs (.sbom) that cosign keeps under " +
			"tags, and " +
			"the referrers of\n" +
			"an image in a registry, an OCI layout or an archive of one; of an index also those of its images, and " +
			"what hangs " +
			"on\n" +
			"referrers. Every manifest that is listed is fetched and its subject compared. Nothing is verified here: " +
			"types, " +
			"names and\n" +
			"keys are what the attachments say; \"verify --key\" verifies signatures." +
			examples("bindery tree oci:catalog.oci:v1", "bindery tree registry.example.com/acme/catalog:v1 -o json"),
		Flags:  flags(answerFlags(), imageFlags()),
		Action: exactly(1, p.tree),
	}
}

// describeAttachment describes an attachment in a few words; empty if there is nothing to say. What it says is not
// verified.
var describeAttachment = func(_ context.Context, _ referrers.Reader, t *referrers.Tree) string {
	switch {
	case strings.HasSuffix(t.Tag, referrers.Signatures):
		return count(len(t.Layers), "signature")
	case strings.HasSuffix(t.Tag, referrers.Attestations):
		return count(len(t.Layers), "attestation")
	case t.Annotations[predicateAnnotation] != "":
		return t.Annotations[predicateAnnotation]
	case len(t.Layers) == 1:
		return t.Layers[0].Annotations[v1.AnnotationTitle]
	}
	return ""
}

// predicateAnnotation is the annotation by which a bundle says what it attests. It is not signed.
const predicateAnnotation = "dev.sigstore.bundle.predicateType"

func (p *program) tree(c *cli.Context) (err error) {
	asJSON, err := checkAnswer(c)
	if err != nil {
		return err
	}
	client, err := p.client(c)
	if err != nil {
		return err
	}
	r, err := client.Repository(c.Context, c.Args().First())
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, r.Close()) }()
	tree, err := referrers.ReadTree(c.Context, r, r.Image, referrers.Limits{})
	if err != nil {
		return &cmdline.Error{Class: cmdline.Classify(err), Object: c.Args().First(), Err: err}
	}
	root := newTreeNode(c.Context, r, tree)
	if err := p.saveLock(); err != nil {
		return err
	}
	if asJSON {
		return p.printJSON(struct {
			Name string `json:"name"`
			treeNode
		}{r.Image.Name, root})
	}
	var b strings.Builder
	name := r.Image.Name
	if name == "" {
		name = c.Args().First()
	}
	fmt.Fprintln(&b, name)
	fmt.Fprintln(&b, root.line())
	root.print(&b, "")
	_, err = p.stdout.Write([]byte(printable.Text(b.String())))
	return err
}

// treeNode is an image or an attachment in the answer.
type treeNode struct {
	Digest       digest.Digest     `json:"digest"`
	MediaType    string            `json:"mediaType"`
	Size         int64             `json:"size"`
	Platform     string            `json:"platform,omitempty"`
	Tag          string            `json:"tag,omitempty"`
	ArtifactType string            `json:"artifactType,omitempty"`
	Annotations  map[string]string `json:"annotations,omitempty"`
	// Description is not verified.
	Description string     `json:"description,omitempty"`
	Attached    []treeNode `json:"attached"`
	Images      []treeNode `json:"images,omitempty"`
	Problems    []string   `json:"problems,omitempty"`
	image       bool
}

func newTreeNode(ctx context.Context, r referrers.Reader, t *referrers.Tree) treeNode {
	n := treeNode{Digest: t.Digest, MediaType: t.MediaType, Size: t.Size, Tag: t.Tag, Attached: []treeNode{},
		image: t.Text == nil}
	if !n.image {
		n.ArtifactType, n.Annotations = t.ArtifactType, t.Annotations
		n.Description = describeAttachment(ctx, r, t)
	}
	if t.Platform != nil {
		n.Platform = t.Platform.OS + "/" + t.Platform.Architecture
		if t.Platform.Variant != "" {
			n.Platform += "/" + t.Platform.Variant
		}
	}
	for _, a := range t.Attached {
		n.Attached = append(n.Attached, newTreeNode(ctx, r, a))
	}
	for _, i := range t.Instances {
		n.Images = append(n.Images, newTreeNode(ctx, r, i))
	}
	for _, problem := range t.Problems {
		n.Problems = append(n.Problems, problem.Error())
	}
	return n
}

// line is the line of a node.
func (n treeNode) line() string {
	var parts []string
	switch {
	case n.Platform != "":
		parts = append(parts, n.Platform)
	case n.image:
		parts = append(parts, n.MediaType)
	case n.Tag != "":
		parts = append(parts, n.Tag[strings.LastIndex(n.Tag, ".")+1:])
	default:
		parts = append(parts, n.ArtifactType)
	}
	parts = append(parts, n.Digest.String())
	if n.Description != "" {
		parts = append(parts, n.Description)
	}
	return strings.Join(parts, "  ")
}

// print writes what hangs on a node, each line after a prefix.
func (n treeNode) print(b *strings.Builder, prefix string) {
	below := append(append([]treeNode{}, n.Attached...), n.Images...)
	for i, one := range below {
		branch, next := "├── ", "│   "
		if i == len(below)-1 && len(n.Problems) == 0 {
			branch, next = "└── ", "    "
		}
		// A line break in a text from outside would look like another line of the tree.
		fmt.Fprintln(b, prefix+branch+printable.Cell(one.line()))
		one.print(b, prefix+next)
	}
	for i, problem := range n.Problems {
		branch := "├── "
		if i == len(n.Problems)-1 {
			branch = "└── "
		}
		fmt.Fprintln(b, prefix+branch+"problem: "+printable.Cell(problem))
	}
}
