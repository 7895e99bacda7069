package sqlite

import (
	"bytes"
	"context"
	"database/sql"
	"fmt"
	"math"
	"strconv"
	"strings"
	"unicode/utf8"

	"github.com/operator-bindery/bindery/internal/fault"
)

// text is a value of a text column; null distinguishes NULL from the empty string.
type text struct {
	s    string
	null bool
}

// reader reads rows of small columns, within the limits.
type reader struct {
	ctx    context.Context
	conn   *sql.Conn
	limits Limits
	rows   int
	bytes  int64
	names  map[string]string // one copy of each repeated text
}

// forEachRow calls fn for every row of a table, in the order in which the rows are stored, with the values of columns;
// those that the database lacks are NULL. A table that is missing has no rows. The slices are valid during the call.
// Reading fails if the table's rows are not as many as SQLite counts.
func (r *reader) forEachRow(s *schema, table string, columns []string, fn func(row []sql.RawBytes) error) error {
	if !s.has(table) {
		return nil
	}
	expressions := make([]string, len(columns))
	for i, column := range columns {
		expressions[i] = s.column(table, column)
	}
	query := fmt.Sprintf("SELECT %s FROM %s NOT INDEXED ORDER BY rowid", strings.Join(expressions, ", "), table)
	rows, err := r.conn.QueryContext(r.ctx, query)
	if err != nil {
		return err
	}
	defer rows.Close()
	row := make([]sql.RawBytes, len(columns))
	targets := make([]any, len(columns))
	for i := range row {
		targets[i] = &row[i]
	}
	n := 0
	for rows.Next() {
		if err := rows.Scan(targets...); err != nil {
			return fmt.Errorf("table %q, row %d: %w", table, n+1, err)
		}
		n++
		if r.rows++; r.rows > r.limits.Rows {
			return fmt.Errorf("%w: more than %d rows", ErrLimit, r.limits.Rows)
		}
		if err := fn(row); err != nil {
			return fmt.Errorf("table %q, row %d: %w", table, n, err)
		}
	}
	if err := rows.Err(); err != nil {
		return fmt.Errorf("table %q, after row %d: %w", table, n, err)
	}
	if err := rows.Close(); err != nil {
		return err
	}
	var count int
	if err := r.conn.QueryRowContext(r.ctx, "SELECT count(*) FROM "+table).Scan(&count); err != nil {
		return err
	}
	if count != n {
		return fmt.Errorf("%w: table %q has %d rows, but %d of them can be read", ErrDamaged, table, count, n)
	}
	return nil
}

// text checks a value and copies it to a string.
func (r *reader) text(column string, raw sql.RawBytes) (text, error) {
	if raw == nil {
		return text{null: true}, nil
	}
	if !utf8.Valid(raw) {
		return text{}, fmt.Errorf("%w: column %s is not UTF-8: %s", ErrInvalid, column, fault.Quote(string(raw)))
	}
	if bytes.IndexByte(raw, 0) >= 0 {
		return text{}, fmt.Errorf("%w: column %s holds a NUL: %s", ErrInvalid, column, fault.Quote(string(raw)))
	}
	if s, ok := r.names[string(raw)]; ok {
		return text{s: s}, nil
	}
	s := string(raw)
	if r.bytes += int64(len(s)); r.bytes > r.limits.TextBytes {
		return text{}, fmt.Errorf("%w: more than %d bytes of text outside of manifests", ErrLimit, r.limits.TextBytes)
	}
	r.names[s] = s
	return text{s: s}, nil
}

// texts reads the leading columns of a row with text.
func (r *reader) texts(columns []string, row []sql.RawBytes, into ...*text) error {
	for i, target := range into {
		t, err := r.text(columns[i], row[i])
		if err != nil {
			return err
		}
		*target = t
	}
	return nil
}

// integer reads a value of an integer column; NULL is math.MinInt64.
func integer(column string, raw sql.RawBytes) (int64, error) {
	if raw == nil {
		return math.MinInt64, nil
	}
	n, err := strconv.ParseInt(string(raw), 10, 64)
	if err != nil {
		return 0, fmt.Errorf("%w: column %s is not an integer: %s", ErrInvalid, column, fault.Quote(string(raw)))
	}
	return n, nil
}
