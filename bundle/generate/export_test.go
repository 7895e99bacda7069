package generate

var (
	DetectMediaType = detectMediaType
	InferPackage    = inferPackage
)

func (m Metadata) Compare(existing map[string]string) error { return m.compare(existing) }
