//go:build !nobuildah

package evaluator

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"strconv"
	"strings"
)

// maxUsers is how much of /etc/passwd and /etc/group is read, in bytes.
const maxUsers = 4 << 20

// owner resolves USER[:GROUP]. Names are looked up in the tree's /etc/passwd and /etc/group. Without a group, a numeric
// user gets the group of the same number, and a named user its primary group.
func owner(ctx context.Context, root *node, text string) (uid, gid int, err error) {
	user, group, _ := strings.Cut(text, ":")
	if user == "" && group == "" {
		return 0, 0, errors.New("missing user name")
	}
	var known bool
	if uid, known = number(user); known {
		gid = uid
	} else if user != "" {
		fields, err := lookup(ctx, root, "/etc/passwd", user, 4)
		if err != nil {
			return 0, 0, err
		}
		var ok1, ok2 bool
		if uid, ok1 = number(fields[2]); !ok1 {
			return 0, 0, fmt.Errorf("/etc/passwd: user %.100q has no number", user)
		}
		if gid, ok2 = number(fields[3]); !ok2 {
			return 0, 0, fmt.Errorf("/etc/passwd: user %.100q has no group", user)
		}
	}
	if group == "" {
		return uid, gid, nil
	}
	if gid, known = number(group); known {
		return uid, gid, nil
	}
	fields, err := lookup(ctx, root, "/etc/group", group, 3)
	if err != nil {
		return 0, 0, err
	}
	if gid, known = number(fields[2]); !known {
		return 0, 0, fmt.Errorf("/etc/group: group %.100q has no number", group)
	}
	return uid, gid, nil
}

func number(text string) (int, bool) {
	n, err := strconv.ParseUint(text, 10, 31)
	return int(n), err == nil
}

// lookup finds the line of a name in /etc/passwd or /etc/group.
func lookup(ctx context.Context, root *node, file, name string, fields int) ([]string, error) {
	p, err := walk(ctx, root, file, true, nil)
	if err == nil && p.node().data == nil {
		err = errors.New("it is not a file")
	}
	if err == nil {
		err = fetchAll(ctx, []*node{p.node()})
	}
	var r io.ReadCloser
	if err == nil {
		r, err = p.node().data.open()
	}
	switch {
	case errors.Is(err, fs.ErrNotExist):
		return nil, newMendError("give the number", "%.100q cannot be looked up: the image has no %s", name, file)
	case err != nil:
		return nil, fmt.Errorf("%s: %w", file, err)
	}
	defer r.Close()
	lines := bufio.NewScanner(io.LimitReader(r, maxUsers))
	for lines.Scan() {
		if f := strings.Split(lines.Text(), ":"); len(f) >= fields && f[0] == name {
			return f, nil
		}
	}
	if err := lines.Err(); err != nil {
		return nil, fmt.Errorf("%s: %w", file, err)
	}
	return nil, newMendError("give the number", "%.100q is not in the image's %s", name, file)
}
