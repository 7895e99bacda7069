// Package registries runs the suite of places of images (images/store/storetest), and the program, against
// registries that others have written: Debian's docker-registry, the registry of distribution 3, and that of
// go-containerregistry, which has the referrers API.
//
// The module is of its own, as the registries need other versions of modules than the program. "make registries" runs
// it; $BINDERY names the program, $REGISTRY3 the registry of distribution 3. All are started on loopback.
package registries
