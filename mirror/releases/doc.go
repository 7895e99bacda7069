// Package releases chooses the releases of OpenShift and OKD that an image set asks for, version by version as
// oc-mirror v2 does, from the graphs of updates that graph servers publish for each channel and architecture.
//
//	Server, Stored  ->  Graph  ->  Request.Choose  ->  Choice: versions, payloads, and why each was chosen
//
// A [Server] asks graph servers, [Stored] reads the graphs that an earlier run has stored, for the other side of an air
// gap. Both are [Graphs]; what they give is untrusted, and bounded in size and number. [Versions], [ChannelsOf] and
// [Minors] are for lists of what there is.
//
// The package verifies no signature, pulls no image and reads no environment.
package releases
