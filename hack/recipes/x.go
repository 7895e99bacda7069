package recipes
import (
 _ "github.com/rhysd/actionlint"
 _ "github.com/tektoncd/pipeline/pkg/apis/pipeline/v1"
)
