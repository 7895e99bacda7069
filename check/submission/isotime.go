package submission

import (
	"strconv"
	"time"

	"github.com/operator-bindery/bindery/internal/lazyregexp"
)

// The forms of times in ISO 8601, each in its basic and its extended form. Only a whole date is followed by a time.
var (
	isoMonth = lazyregexp.New(`^(\d{4})(?:-(\d\d))?$`)
	isoWeek  = lazyregexp.New(`^\d{4}(?:-W(\d\d)|W(\d\d))$`)
	isoDate  = lazyregexp.New(`^(?:(\d{4})-(\d\d)-(\d\d)|(\d{4})(\d\d)(\d\d)|\d{4}-W(\d\d)-(\d)|\d{4}W(\d\d)(\d)|\d{4}-?(\d{3}))(?:[\x00-\x7f](.+))?$`)
	isoTime  = lazyregexp.New(`^(\d\d)(?::(\d\d)(?::(\d\d)(?:[.,](\d+))?)?|(\d\d)(?:(\d\d)(?:[.,](\d+))?)?)?(?:[Zz]|[-+](\d\d)(?::?(\d\d))?)?$`)
)

// isTime reports whether a text is a time as the pipeline reads it: a date in ISO 8601, alone or followed by any
// character and a time of the day.
func isTime(s string) bool {
	if m := isoMonth().FindStringSubmatch(s); m != nil {
		return number(m[1]) > 0 && (m[2] == "" || within(m[2], 1, 12))
	}
	if m := isoWeek().FindStringSubmatch(s); m != nil {
		return within(m[1]+m[2], 1, 53)
	}
	m := isoDate().FindStringSubmatch(s)
	switch {
	case m == nil,
		m[1]+m[4] != "" && !isDay(number(m[1]+m[4]), number(m[2]+m[5]), number(m[3]+m[6])),
		m[7]+m[9] != "" && !(within(m[7]+m[9], 1, 53) && within(m[8]+m[10], 1, 7)),
		m[11] != "" && (!within(m[11], 1, 366) || number(m[11]) == 366 && !isDay(number(s[:4]), 2, 29)):
		return false
	}
	rest := m[12]
	if rest == "" {
		return true
	}
	t := isoTime().FindStringSubmatch(rest)
	if t == nil {
		return false
	}
	minute, second, fraction := t[2]+t[5], t[3]+t[6], t[4]+t[7]
	midnight := t[1] == "24" && number(minute)+number(second)+number(fraction) == 0
	return (midnight || isClock(t[1], minute, second)) && isClock(t[8], t[9], "")
}

// isDay reports whether a day is in the calendar.
func isDay(year, month, day int) bool {
	t := time.Date(year, time.Month(month), day, 0, 0, 0, 0, time.UTC)
	return year > 0 && t.Month() == time.Month(month) && t.Day() == day
}

func isClock(hour, minute, second string) bool {
	return number(hour) < 24 && number(minute) < 60 && number(second) < 60
}

// within reports whether a number is in a range.
func within(digits string, least, most int) bool {
	return number(digits) >= least && number(digits) <= most
}

// number returns the number of some digits; 0 for none.
func number(digits string) int {
	n, _ := strconv.Atoi(digits[:min(len(digits), 9)])
	return n
}
