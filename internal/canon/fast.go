package canon

type fastState struct{}

func (c *Converter) appendFast(dst, doc []byte, l Limits) ([]byte, bool) { return dst, false }
