package sign

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/opencontainers/go-digest"
	v1 "github.com/opencontainers/image-spec/specs-go/v1"
	"github.com/urfave/cli/v2"

	"github.com/operator-bindery/bindery/cmd/internal/cmdline"
	"github.com/operator-bindery/bindery/cmd/internal/option"
	"github.com/operator-bindery/bindery/cmd/internal/program"
	"github.com/operator-bindery/bindery/images/referrers"
	"github.com/operator-bindery/bindery/images/signature"
	"github.com/operator-bindery/bindery/images/store"
	"github.com/operator-bindery/bindery/internal/platform"
	"github.com/operator-bindery/bindery/internal/printable"
)

// treeOptions are the flags of "tree".
type treeOptions struct {
	option.Answer
	option.Images
	option.Certificates
	keys cli.StringSlice
}

// TreeCommand returns "tree".
func TreeCommand(p *option.Session) *cli.Command {
	o := &treeOptions{}
	return &cli.Command{
		Name:      "tree",
		Usage:     "show what is attached to an image: signatures, attestations, SBOMs",
		ArgsUsage: "IMAGE",
		Description: `Shows the signatures (.sig), attestations (.att) and SBOMs (.sbom) that cosign keeps
under tags, and the referrers of an image in a registry, an OCI layout or an archive of one; of an index also
those of its images, and what hangs on referrers. Every manifest that is listed is fetched and its subject
compared. Signatures and attestations are those of the keys of --key where that is shown; all else is what the
attachments say of themselves, and not verified.` +
			program.Examples("bindery tree oci:catalog.oci:v1", "bindery tree registry.example.com/acme/catalog:v1 -o json",
				"bindery tree registry.example.com/acme/catalog:v1 --key release.pub"),
		Flags: program.Flags([]cli.Flag{
			&cli.StringSliceFlag{Name: "key", Category: "signatures", Destination: &o.keys,
				Usage: "show what the public key in `FILE` (PEM) has signed; can be repeated"},
		}, o.Certificates.Flags(), o.RootFlags("signatures"), o.Answer.Flags(), o.FlagsWithoutPolicy()),
		Action: program.Exactly(1, p.Action(func(ctx context.Context, args []string) error { return showTree(ctx, p, o, args[0]) })),
	}
}

// describeAttachment describes an attachment in a few words; empty if there is nothing to say. What it says is not
// verified.
func describeAttachment(t *referrers.Tree) string {
	switch {
	case strings.HasSuffix(t.Tag, referrers.Signatures):
		return program.Count(len(t.Layers), "signature")
	case strings.HasSuffix(t.Tag, referrers.Attestations):
		return program.Count(len(t.Layers), "attestation")
	case t.Annotations[predicateAnnotation] == signature.PredicateSign:
		return "signature"
	case t.Annotations[predicateAnnotation] != "":
		return t.Annotations[predicateAnnotation]
	case len(t.Layers) == 1:
		return t.Layers[0].Annotations[v1.AnnotationTitle]
	}
	return ""
}

// predicateAnnotation is the annotation by which a bundle says what it attests. It is not signed.
const predicateAnnotation = "dev.sigstore.bundle.predicateType"

func showTree(ctx context.Context, p *option.Session, o *treeOptions, ref string) (err error) {
	format, err := o.Format()
	if err != nil {
		return err
	}
	keys, files, err := option.PublicKeys(ctx, p, "key", o.keys.Value())
	if err != nil {
		return err
	}
	identities, err := o.Verifier(ctx, p, &o.TrustedRoot)
	if err != nil {
		return err
	}
	client, err := p.Client(ctx, &o.Images)
	if err != nil {
		return err
	}
	ctx, cancel := o.WithTimeout(ctx)
	defer cancel()
	r, err := openAttached(ctx, client, ref)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, r.Close()) }()
	tree, err := referrers.ReadTree(ctx, r, r.image, store.Limits{})
	if err != nil {
		return &cmdline.Error{Class: cmdline.Classify(err), Object: ref, Err: err}
	}
	w := &treeWriter{r: r, by: signature.VerifyOptions{Keys: keys, Identities: identities}, files: files}
	root, err := w.node(ctx, tree, nil)
	if err != nil {
		return &cmdline.Error{Class: cmdline.Classify(err), Object: ref, Err: err}
	}
	if err := p.SaveLock(); err != nil {
		return err
	}
	if format.IsDocument() {
		return p.PrintValue(format, NamedTree{r.image.Name, root})
	}
	var b strings.Builder
	name := r.image.Name
	if name == "" {
		name = ref
	}
	fmt.Fprintln(&b, name)
	fmt.Fprintln(&b, root.line())
	root.print(&b, "")
	_, err = p.Stdout.Write([]byte(printable.Text(b.String())))
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
	Description string `json:"description,omitempty"`
	// Claims are the signatures and attestations in it.
	Claims   []signature.Claim `json:"claims,omitempty"`
	Attached []treeNode        `json:"attached"`
	Images   []treeNode        `json:"images,omitempty"`
	Problems []string          `json:"problems,omitempty"`
	image    bool
	signers  []string
}

// NamedTree is the answer as JSON.
type NamedTree struct {
	// Name is that of the image, without its transport.
	Name string `json:"name"`
	treeNode
}

// treeWriter makes the answer of one tree.
type treeWriter struct {
	r     store.Reader
	by    signature.VerifyOptions
	files map[string]string // of the keys, by their fingerprints
}

// node describes a manifest and what is attached to it. claims are those of what is attached to its subject.
func (w *treeWriter) node(ctx context.Context, t *referrers.Tree, claims []signature.Claim) (treeNode, error) {
	n := treeNode{Digest: t.Digest, MediaType: t.MediaType, Size: t.Size, Tag: t.Tag, Attached: []treeNode{},
		image: t.Text == nil}
	if !n.image {
		n.ArtifactType, n.Annotations = t.ArtifactType, t.Annotations
		n.Description = describeAttachment(t)
		for _, claim := range claims {
			if claim.Manifest == t.Digest {
				n.Claims = append(n.Claims, claim)
				if text := w.signer(claim); !slices.Contains(n.signers, text) {
					n.signers = append(n.signers, text)
				}
			}
		}
	}
	if t.Platform != nil {
		n.Platform = platform.Name(*t.Platform)
	}
	below := []signature.Claim{}
	if len(t.Attached) > 0 {
		var err error
		if below, err = w.by.Examine(ctx, w.r, t.Digest); err != nil {
			return n, err
		}
	}
	for _, a := range t.Attached {
		one, err := w.node(ctx, a, below)
		if err != nil {
			return n, err
		}
		n.Attached = append(n.Attached, one)
	}
	for _, i := range t.Instances {
		one, err := w.node(ctx, i, nil)
		if err != nil {
			return n, err
		}
		n.Images = append(n.Images, one)
	}
	for _, problem := range t.Problems {
		n.Problems = append(n.Problems, problem.Error())
	}
	return n, nil
}

// signer says whose signature a claim is.
func (w *treeWriter) signer(c signature.Claim) string {
	text := ""
	if c.Identity != "" {
		text = " for " + c.Identity
	}
	switch {
	case c.Verified:
		return "signed by " + signedBy(c.CertificateIdentity, w.files[c.Key]) + text
	case w.by.Identities != nil:
		return "signed by another" + text
	case len(w.by.Keys) > 0:
		return "signed by another key" + text
	case c.Name != "":
		return "says " + c.Name + text
	case c.Key != "":
		return "says key " + c.Key[:len("sha256:")+12] + "…" + text
	}
	return strings.TrimPrefix(text+", by a key that it does not name", ", ")
}

// Line is the line of a node.
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
	if len(n.signers) > 0 {
		parts = append(parts, strings.TrimSpace(strings.Join(n.signers, "; ")))
	}
	return strings.Join(parts, "  ")
}

// print writes what is attached to a node, each line after a prefix.
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
