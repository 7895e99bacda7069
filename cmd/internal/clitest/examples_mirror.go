package clitest

// MirrorImageSet is the image set of the examples of mirroring: operators of the fixture.
const MirrorImageSet = `kind: ImageSetConfiguration
apiVersion: mirror.openshift.io/v2alpha1
mirror:
  operators:
  - catalog: registry.example.com/acme/catalog:v1
    packages:
    - name: alpha-op
    - name: beta-op
  additionalImages:
  - name: registry.example.com/extra/tool:v1
`

const DeleteImageSet = `kind: DeleteImageSetConfiguration
apiVersion: mirror.openshift.io/v2alpha1
delete:
  operators:
  - catalog: registry.example.com/acme/catalog:v1
    packages:
    - name: alpha-op
`
