package clitest

const OneBundle = `{"schema":"olm.package","name":"NAME","defaultChannel":"stable"}
{"schema":"olm.channel","package":"NAME","name":"stable","entries":[{"name":"NAME.v1.0.0"}]}
{"schema":"olm.bundle","package":"NAME","name":"NAME.v1.0.0","image":"IMAGE","properties":[{"type":"olm.package",` +
	`"value":{"packageName":"NAME","version":"1.0.0"}}]}
`
