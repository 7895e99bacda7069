//go:build linux && cgo && buildah && exclude_graphdriver_btrfs

package fullbuild

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"maps"
	"os"
	"os/exec"
	"path/filepath"
	"time"

	rspec "github.com/opencontainers/runtime-spec/specs-go"
	"go.podman.io/buildah"
	"go.podman.io/buildah/define"
	"go.podman.io/buildah/imagebuildah"
	"go.podman.io/image/v5/signature"
	"go.podman.io/image/v5/types"
	"go.podman.io/storage"
	"go.podman.io/storage/pkg/archive"
	"go.podman.io/storage/pkg/unshare"
	"golang.org/x/sys/unix"

	"github.com/operator-bindery/bindery/internal/platform"
)

// Available reports whether this program can run commands.
const Available = true

// Init must be called first in main. It returns true if the library started this process for a part of a build, which
// is then done: main must return.
func Init() bool { return buildah.InitReexec() }

// Build builds the images of a request, one platform after the other. The process must be one that [Enter] started. A
// failed command is an [ExitError]. Calls must not overlap.
func Build(ctx context.Context, r Request) (_ *Result, err error) {
	if err := r.check(); err != nil {
		return nil, err
	}
	if r.Log == nil {
		r.Log = io.Discard
	}
	if err := r.foreign(); err != nil {
		return nil, err
	}
	sys := types.SystemContext{}
	if r.System != nil {
		sys = *r.System
	}
	credentials(&sys, unshare.GetRootlessUID())
	r.System = &sys
	policy, err := r.policyFile()
	if err != nil {
		return nil, err
	}
	restore, err := r.scratch()
	if err != nil {
		return nil, err
	}
	defer func() { err = errors.Join(err, restore()) }()
	store, err := openStore(r.Dir)
	if err != nil {
		return nil, err
	}
	defer func() {
		if _, e := store.Shutdown(true); e != nil && err == nil {
			err = fmt.Errorf("closing the store of the build: %w", e)
		}
	}()
	platforms := r.platforms()
	result := &Result{}
	for i, p := range platforms {
		dir := filepath.Join(r.Dir, fmt.Sprintf("image%d", i))
		options := r.options(policy)
		options.Output = "dir:" + dir
		options.Platforms = []struct{ OS, Arch, Variant string }{{p.OS, p.Architecture, p.Variant}}
		bases, err := r.bases(ctx, store, options.SystemContext, p)
		if err != nil {
			return nil, failure(ctx, err)
		}
		maps.Copy(options.AdditionalBuildContexts, bases)
		if _, _, err := imagebuildah.BuildDockerfiles(ctx, store, options, r.File); err != nil {
			if len(platforms) > 1 {
				err = fmt.Errorf("%s: %w", platform.Name(p), err)
			}
			return nil, failure(ctx, err)
		}
		result.Dirs = append(result.Dirs, dir)
	}
	return result, nil
}

// options converts the request to the library's options.
func (r Request) options(policy string) define.BuildOptions {
	created := r.created()
	jobs := 1
	sys := *r.System
	sys.SignaturePolicyPath, sys.BigFilesTemporaryDir = policy, os.Getenv("TMPDIR")
	sys.BlobInfoCacheDir = filepath.Join(r.Dir, "blob-info") // a record of blob locations is useless: the store is new
	o := define.BuildOptions{
		ContextDirectory: r.Context,
		Target:           r.Target,
		Args:             map[string]string{},
		Labels:           r.Labels,
		Annotations:      r.Annotations,
		Timestamp:        &created,
		OutputFormat:     define.OCIv1ImageManifest,
		Compression:      archive.Gzip,
		SystemContext:    &sys,
		// The policy applies to bases; the image itself is built here.
		SignaturePolicyPath: policy,
		PullPolicy:          define.PullIfMissing,
		MaxPullPushRetries:  r.Retries,
		PullPushRetryDelay:  time.Second,

		Isolation:        define.IsolationChroot,
		NetworkInterface: noNetwork{},
		// Commands share the network of the build, as in chroot isolation.
		NamespaceOptions: []define.NamespaceOption{{Name: string(rspec.NetworkNamespace), Host: true}},
		ConfigureNetwork: define.NetworkDefault,
		IDMappingOptions: &define.IDMappingOptions{HostUIDMapping: true, HostGIDMapping: true},
		CommonBuildOpts: &define.CommonBuildOptions{
			HTTPProxy: true,
			// No label with the library's version: it would change the image.
			IdentityLabel: types.OptionalBoolFalse,
			Secrets:       r.Secrets,
			Ulimit:        ulimits(),
		},
		In:           bytes.NewReader(nil),
		Out:          r.Log,
		Err:          r.Log,
		ReportWriter: r.Log,

		Jobs:                    &jobs,
		NoCache:                 true, // the store is new
		RemoveIntermediateCtrs:  true,
		ForceRmIntermediateCtrs: true,
		CreatedAnnotation:       types.OptionalBoolFalse,
		AdditionalBuildContexts: map[string]*define.AdditionalBuildContext{},
	}
	for k, v := range r.Args {
		o.Args[k] = v
	}
	for name, value := range r.Contexts {
		o.AdditionalBuildContexts[name] = additionalContext(value)
	}
	if r.Format == Docker {
		o.OutputFormat = define.Dockerv2ImageManifest
	}
	if r.Zstd {
		o.Compression = archive.Zstd
	}
	return o
}

// ulimits returns the limits of this process. Otherwise the library tries to raise them, which fails if the hard limit
// is lower.
func ulimits() (out []string) {
	for name, which := range map[string]int{"nofile": unix.RLIMIT_NOFILE, "nproc": unix.RLIMIT_NPROC} {
		var l unix.Rlimit
		if err := unix.Getrlimit(which, &l); err != nil {
			continue
		}
		out = append(out, fmt.Sprintf("%s=%d:%d", name, int64(l.Cur), int64(l.Max))) // unlimited is -1
	}
	return out
}

// openStore opens a store in the directory: with overlay if the kernel and the file system support it, else with vfs,
// which copies every layer. The variable STORAGE_DRIVER chooses the driver as for podman.
func openStore(dir string) (storage.Store, error) {
	drivers := []string{"overlay", "vfs"}
	if d := os.Getenv("STORAGE_DRIVER"); d != "" {
		drivers = []string{d}
	}
	var errs []error
	for _, driver := range drivers {
		root := filepath.Join(dir, "store-"+driver)
		store, err := storage.GetStore(storage.StoreOptions{
			GraphDriverName: driver, GraphRoot: filepath.Join(root, "graph"), RunRoot: filepath.Join(root, "run"),
		})
		if err == nil {
			return store, nil
		}
		errs = append(errs, fmt.Errorf("%s: %w", driver, err))
	}
	return nil, fmt.Errorf("opening a store for the build in %s: %w", dir, errors.Join(errs...))
}

// acceptAll is the policy for systems without one (containers-policy.json(5)); the library requires a policy.
const acceptAll = `{"default":[{"type":"insecureAcceptAnything"}]}`

// policyFile returns the policy.json for the bases; empty for the system's.
func (r Request) policyFile() (string, error) {
	if r.Policy != "" {
		return r.Policy, nil
	}
	_, err := signature.DefaultPolicy(r.System)
	if err == nil || !errors.Is(err, os.ErrNotExist) {
		return "", err
	}
	file := filepath.Join(r.Dir, "policy.json")
	return file, os.WriteFile(file, []byte(acceptAll), 0o600)
}

// failure adds the exit status of the failed command, if any, to an error of the library.
func failure(ctx context.Context, err error) error {
	if ctx.Err() != nil {
		return errors.Join(context.Cause(ctx), err)
	}
	var exit *exec.ExitError
	if errors.As(err, &exit) && exit.ExitCode() > 0 {
		return &ExitError{Status: exit.ExitCode(), Err: err}
	}
	return err
}
