package medium

import (
	"archive/tar"
	"bytes"
	"fmt"
	"strings"
	"time"

	"github.com/opencontainers/go-digest"
	v1 "github.com/opencontainers/image-spec/specs-go/v1"

	"github.com/operator-bindery/bindery/internal/fault"
	"github.com/operator-bindery/bindery/internal/lazyregexp"
	"github.com/operator-bindery/bindery/internal/verify"
)

// Form is the form of an archive's content.
type Form string

// The forms.
const (
	// OCI is an OCI image layout: blobs/sha256/HEX, oci-layout, index.json.
	OCI Form = "oci"
	// OCMirror is the form of oc-mirror v2: docker/registry/v2/... as a docker distribution registry stores it.
	OCMirror Form = "oc-mirror"
)

// Names of members. The files of a run, working-dir/... and isc_TIME, have the same names in both forms.
const (
	registryDir = "docker/registry/v2/"
	// contentsFile is bindery's description of the archive. In the form of oc-mirror it is below working-dir, as that
	// program unpacks nothing else.
	contentsFile = "bindery-mirror.json"
	// voidPrefix is that of files without a meaning, see [Writer.Finish].
	voidPrefix   = ".void/"
	workingDir   = "working-dir/"
	configPrefix = "isc_"
)

// Names of files in the directory of an archive. While it is written, its files have names that no reader looks for.
const (
	segmentFormat = "mirror_%06d.tar"
	journalFile   = ".mirror.journal"
	commitFile    = ".mirror.commit"
	maxSegments   = 999_999
)

var (
	segmentExpr = lazyregexp.New(`^mirror_[0-9]{6}\.tar$`)
	// partialName matches the names of unfinished segments, also that of earlier versions, which oc-mirror takes for an archive.
	partialName = lazyregexp.New(`^\.mirror_[0-9]{6}(\.tar)?\.partial$`)
)

// segmentName returns the name of a segment, which is counted from 1.
func segmentName(n int) string { return fmt.Sprintf(segmentFormat, n) }

func segmentNumber(name string) (n int, err error) {
	if !segmentExpr().MatchString(name) {
		return 0, fmt.Errorf("%w: the name %.40q of a segment", fault.ErrInvalid, name)
	}
	if _, err = fmt.Sscanf(name, segmentFormat, &n); err == nil && n == 0 {
		err = fmt.Errorf("%w: %s: segments are counted from 1", fault.ErrInvalid, name)
	}
	return n, err
}

// checkNames returns an error unless the names of segments follow each other without a gap.
func checkNames(names []string) error {
	for i, name := range names {
		n, err := segmentNumber(name)
		if err != nil {
			return err
		}
		if i > 0 && segmentName(n-1) != names[i-1] {
			return fmt.Errorf("%w: %s is missing", fault.ErrIntegrity, segmentName(n-1))
		}
	}
	return nil
}

func partial(n int) string { return fmt.Sprintf(".mirror_%06d.partial", n) }

// check returns an error for an unknown form.
func (f Form) check() error {
	if f != OCI && f != OCMirror {
		return fmt.Errorf("%w: the form of an archive is %s or %s, and not %.40q", fault.ErrInvalid, OCI, OCMirror,
			string(f))
	}
	return nil
}

// key is a sha256 digest in the least space.
type key [32]byte

func keyOf(d digest.Digest) (k key, err error) {
	if err := verify.Digest(d); err != nil {
		return k, err
	}
	for i := range k {
		k[i] = unhex(d[7+2*i])<<4 | unhex(d[8+2*i])
	}
	return k, nil
}

func unhex(c byte) byte {
	if c >= 'a' {
		return c - 'a' + 10
	}
	return c - '0'
}

func (k key) digest() digest.Digest {
	return digest.NewDigestFromBytes(digest.SHA256, k[:])
}

// blobName returns the name of the member that holds a blob.
func (f Form) blobName(k key) string {
	hex := k.digest().Encoded()
	if f == OCI {
		return v1.ImageBlobsDir + "/sha256/" + hex
	}
	return registryDir + "blobs/sha256/" + hex[:2] + "/" + hex + "/data"
}

// blobKey returns the digest of the blob that a member of a name holds.
func (f Form) blobKey(name string) (k key, ok bool) {
	hex, ok := strings.CutPrefix(name, v1.ImageBlobsDir+"/sha256/")
	if f == OCMirror {
		if hex, ok = strings.CutPrefix(name, registryDir+"blobs/sha256/"); !ok {
			return k, false
		}
		if hex, ok = strings.CutSuffix(hex, "/data"); !ok || len(hex) != 67 || hex[:2] != hex[3:5] || hex[2] != '/' {
			return k, false
		}
		hex = hex[3:]
	}
	if !ok {
		return k, false
	}
	k, err := keyOf(digest.Digest("sha256:" + hex))
	return k, err == nil
}

// contentsName returns the name of the description of the archive.
func (f Form) contentsName() string {
	if f == OCI {
		return contentsFile
	}
	return workingDir + contentsFile
}

const (
	block = 512
	// trailer is the end of an archive: two blocks of zeros.
	trailer = 2 * block
)

// header returns the header of a member, which is a function of name and size.
func header(name string, size int64) ([]byte, error) {
	var b bytes.Buffer
	err := tar.NewWriter(&b).WriteHeader(&tar.Header{Typeflag: tar.TypeReg, Name: name, Size: size, Mode: 0o644,
		ModTime: time.Unix(0, 0)})
	return b.Bytes(), err
}

// padded returns the length of content in an archive.
func padded(size int64) int64 { return (size + block - 1) &^ (block - 1) }
