"""Rows of the broker config table for security: TLS, SASL and access rules."""
# ruff: noqa: E501  (one row is one line)

import re

from headrace.model.configs.access import STANDARD_AUTHORIZER, super_users_error
from headrace.model.configs.definition import ConfigType, Scope, row
from headrace.model.configs.oauth import claim_error, keys_url_error
from headrace.model.jaas import jaas_error
from headrace.model.principal_rules import rules_error

STRING, LIST, PASSWORD, INT, LONG = (
    ConfigType.STRING,
    ConfigType.LIST,
    ConfigType.PASSWORD,
    ConfigType.INT,
    ConfigType.LONG,
)
PER_BROKER = Scope.PER_BROKER

STORE_TYPES = ("PEM", "PKCS12")
TOKEN_HANDLERS = (
    "org.apache.kafka.common.security.oauthbearer.OAuthBearerValidatorCallbackHandler",
    "org.apache.kafka.common.security.oauthbearer.secured.OAuthBearerValidatorCallbackHandler",
)


def store_type_error(text: str) -> str | None:
    """Check the type of a key store or trust store."""
    if text.upper() in STORE_TYPES:
        return None
    convert = "convert it with `keytool -importkeystore -srckeystore OLD -destkeystore NEW.p12 -deststoretype PKCS12`"
    return f"must be one of {', '.join(STORE_TYPES)}: only Java reads other stores, {convert}"


TLS_ROWS = (
    row("ssl.keystore.type", STRING, "PEM", "The format of the key store: PEM or PKCS12. Kafka's default, JKS, can be read by Java alone.", validator=store_type_error, scope=PER_BROKER),
    row("ssl.keystore.location", STRING, None, "The file with the broker's private key and its certificate chain. The broker reads it again when it changes.", scope=PER_BROKER),
    row("ssl.keystore.password", PASSWORD, None, "The password of a PKCS12 key store.", sensitive=True),
    row("ssl.keystore.key", PASSWORD, None, "The broker's private key as PEM text, instead of a file.", sensitive=True),
    row("ssl.keystore.certificate.chain", PASSWORD, None, "The broker's certificate chain as PEM text, instead of a file.", sensitive=True),
    row("ssl.key.password", PASSWORD, None, "The password of the private key.", sensitive=True),
    row("ssl.truststore.type", STRING, "PEM", "The format of the trust store: PEM or PKCS12.", validator=store_type_error, scope=PER_BROKER),
    row("ssl.truststore.location", STRING, None, "The file with the certificates of the authorities that sign client certificates. The broker reads it again when it changes.", scope=PER_BROKER),
    row("ssl.truststore.password", PASSWORD, None, "The password of a PKCS12 trust store.", sensitive=True),
    row("ssl.truststore.certificates", PASSWORD, None, "Certificates of authorities as PEM text, instead of a file.", sensitive=True),
    row("ssl.client.auth", STRING, "none", "Whether clients must present a certificate on listeners with TLS: required, requested (may, and then it must be valid) or none.", choices=("required", "requested", "none"), scope=PER_BROKER),
    row("ssl.enabled.protocols", LIST, ("TLSv1.2", "TLSv1.3"), "The TLS versions that clients may use.", choices=("TLSv1.2", "TLSv1.3"), scope=PER_BROKER),
    row("ssl.cipher.suites", LIST, (), "The cipher suites that clients may use, by their IANA names; by default all that OpenSSL considers strong. TLS 1.3 is disabled by a list without a suite of it, and otherwise uses all of its suites.", scope=PER_BROKER),
    row("ssl.principal.mapping.rules", STRING, "DEFAULT", "Rules that make a principal's name of the distinguished name of a client's certificate, as in Kafka: RULE:pattern/replacement/[LU], or DEFAULT.", validator=rules_error),
    row("headrace.ssl.crl.location", STRING, None, "A PEM file with certificate revocation lists: client certificates that they name are refused. Every authority that signs client certificates must have a list in it. The broker reads it again when it changes.", scope=PER_BROKER),
    row("ssl.protocol", STRING, "TLSv1.3", "A config of the Java broker; ssl.enabled.protocols decides.", honoured=False),
    row("ssl.endpoint.identification.algorithm", STRING, "https", "Whether brokers verify each other's host names; the listener between nodes has no TLS.", scope=PER_BROKER, honoured=False),
    row("ssl.keymanager.algorithm", STRING, "SunX509", "A config of the Java broker.", scope=PER_BROKER, honoured=False),
    row("ssl.trustmanager.algorithm", STRING, "PKIX", "A config of the Java broker.", scope=PER_BROKER, honoured=False),
    row("ssl.secure.random.implementation", STRING, None, "A config of the Java broker.", scope=PER_BROKER, honoured=False),
)  # fmt: skip

SASL_ROWS = (
    row("sasl.enabled.mechanisms", LIST, ("SCRAM-SHA-256", "SCRAM-SHA-512"), "The SASL mechanisms that clients may use. Kafka's default, GSSAPI, is not supported.", choices=("PLAIN", "SCRAM-SHA-256", "SCRAM-SHA-512", "OAUTHBEARER"), scope=PER_BROKER),
    row("sasl.jaas.config", PASSWORD, None, 'The users of PLAIN: org.apache.kafka.common.security.plain.PlainLoginModule required user_alice="PASSWORD";. As listener.name.NAME.plain.sasl.jaas.config it is for one listener. The users of SCRAM are in the metadata log (headrace users).', validator=jaas_error, sensitive=True),
    row("sasl.server.max.receive.size", INT, 512 << 10, "The maximum size of a request before authentication.", low=64),
    row("connections.max.reauth.ms", LONG, 0, "The time after which a client must authenticate again (KIP-368); 0 means never.", low=0),
    row("connection.failed.authentication.delay.ms", INT, 100, "The delay of the response to a failed authentication.", low=0, high=60_000),
)  # fmt: skip

OAUTH_ROWS = (
    row("sasl.oauthbearer.jwks.endpoint.url", STRING, None, "Where the broker reads the public keys of the identity provider whose tokens OAUTHBEARER accepts (JWKS): an address with https://, or a file with file://. With http:// only on this machine.", validator=keys_url_error),
    row("headrace.sasl.oauthbearer.ca.location", STRING, None, "A PEM file with the authorities by which the certificate of the identity provider is checked, instead of those of the system."),
    row("sasl.oauthbearer.jwks.endpoint.refresh.ms", LONG, 3_600_000, "The interval at which the keys are fetched again. A token with an unknown key fetches them at once, at most every 10 s. A file is read every 5 s.", low=1_000),
    row("sasl.oauthbearer.jwks.endpoint.retry.backoff.ms", LONG, 100, "The wait after a fetch of keys that failed; it doubles with every further one.", low=1),
    row("sasl.oauthbearer.jwks.endpoint.retry.backoff.max.ms", LONG, 10_000, "The longest such wait.", low=1),
    row("sasl.oauthbearer.expected.issuer", STRING, None, "The issuer that a token must have (iss)."),
    row("sasl.oauthbearer.expected.audience", LIST, (), "The audiences of which a token must have one (aud). Without it, a token that the provider has issued for another service is accepted too."),
    row("sasl.oauthbearer.clock.skew.seconds", INT, 30, "The difference between the clocks of the broker and the identity provider that is tolerated.", low=0, high=3_600),
    row("sasl.oauthbearer.sub.claim.name", STRING, "sub", "The claim with the name of the user.", validator=claim_error),
    row("sasl.oauthbearer.scope.claim.name", STRING, "scope", "The claim with the scopes of a token.", validator=claim_error),
    row("headrace.sasl.oauthbearer.required.scopes", LIST, (), "Scopes that a token must have, all of them."),
    row("sasl.server.callback.handler.class", STRING, None, "A config of the Java broker: every token is checked, as by OAuthBearerValidatorCallbackHandler.", choices=TOKEN_HANDLERS, honoured=False),
)  # fmt: skip

TOKEN_ROWS = (
    row("delegation.token.secret.key", PASSWORD, None, "The secret from which delegation tokens are made, the same on every node of the cluster. Without it, tokens are not served; with another one, all tokens are invalid.", sensitive=True),
    row("delegation.token.max.lifetime.ms", LONG, 604_800_000, "The longest life of a delegation token, whatever is renewed.", low=1),
    row("delegation.token.expiry.time.ms", LONG, 86_400_000, "The time after which a delegation token expires unless it is renewed.", low=1),
    row("delegation.token.expiry.check.interval.ms", LONG, 3_600_000, "The interval at which expired delegation tokens are removed. They cannot be used before that either.", low=1),
)  # fmt: skip

ACCESS_ROWS = (
    row("authorizer.class.name", STRING, "", "The authorizer: empty, or Kafka's class name of the authorizer with access rules in the metadata log, which every node of the cluster then needs.", choices=("", STANDARD_AUTHORIZER)),
    row("super.users", STRING, "", "Principals that are allowed to do everything, such as User:admin;User:CN=ops. Semicolons separate them.", validator=super_users_error),
    row("allow.everyone.if.no.acl.found", ConfigType.BOOLEAN, False, "Whether every client may do everything on resources for which there is no access rule."),
)  # fmt: skip

SECRET_ROWS = (
    row("headrace.secrets.strict", ConfigType.BOOLEAN, False, "Whether the broker refuses to start when other users of the machine can read its secrets, in a file or among its arguments. Otherwise it warns."),
)  # fmt: skip

LISTENER_PREFIX = r"listener\.name\.(?P<listener>[A-Za-z0-9_-]+)\."
JAAS_OF_A_LISTENER = (
    LISTENER_PREFIX + r"(?P<mechanism>plain|scram-sha-256|scram-sha-512|oauthbearer)\.sasl\.jaas\.config"
)
_HANDLER_OF_A_LISTENER = LISTENER_PREFIX + r"oauthbearer\.sasl\.server\.callback\.handler\.class"
OAUTH_OF_A_LISTENER = LISTENER_PREFIX + r"(?:oauthbearer\.)?(?P<name>(?:headrace\.)?sasl\.oauthbearer\..*)"
PREFIXED = (
    (LISTENER_PREFIX + r"max\.connections", "max.connections"),
    (LISTENER_PREFIX + r"max\.connection\.creation\.rate", "max.connection.creation.rate"),
    (JAAS_OF_A_LISTENER, "sasl.jaas.config"),
    (_HANDLER_OF_A_LISTENER, "sasl.server.callback.handler.class"),
    *(
        (LISTENER_PREFIX + r"(?:oauthbearer\.)?" + re.escape(each.name), each.name)
        for each in OAUTH_ROWS
        if each.honoured
    ),
)
"""Patterns of names that set a config for one listener, with the row that defines it."""
