"""The subject of a certificate as text: RFC 2253 as Java writes it, and bytes that are no certificate."""

import datetime
from functools import cache

import pytest
from cryptography import x509
from cryptography.hazmat.primitives import serialization
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.hazmat.primitives.hashes import SHA256
from cryptography.x509.name import _ASN1Type
from cryptography.x509.oid import NameOID
from hypothesis import given, settings
from hypothesis import strategies as st

from headrace.core.access.certificate_names import CertificateError, subject_of


@cache
def _key():
    return ec.generate_private_key(ec.SECP256R1())


def certificate(*names):
    """A certificate in DER; each name is a list of attributes."""
    subject = x509.Name(
        [x509.RelativeDistinguishedName([x509.NameAttribute(*each) for each in name]) for name in names]
    )
    now = datetime.datetime(2026, 1, 1, tzinfo=datetime.UTC)
    return (
        x509.CertificateBuilder()
        .subject_name(subject)
        .issuer_name(x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, "an authority")]))
        .public_key(_key().public_key())
        .serial_number(7)
        .not_valid_before(now)
        .not_valid_after(now + datetime.timedelta(days=1))
        .sign(_key(), SHA256())
        .public_bytes(serialization.Encoding.DER)
    )


CN, ORG, C, EMAIL = NameOID.COMMON_NAME, NameOID.ORGANIZATION_NAME, NameOID.COUNTRY_NAME, NameOID.EMAIL_ADDRESS


def test_the_most_specific_name_comes_first():
    assert subject_of(certificate([(C, "DE")], [(ORG, "Corp")], [(CN, "alice")])) == "CN=alice,O=Corp,C=DE"


def test_attributes_of_one_name_are_joined():
    text = subject_of(certificate([(C, "DE")], [(CN, "alice"), (ORG, "Corp")]))
    assert sorted(text.split(",")[0].split("+")) == ["CN=alice", "O=Corp"]


@pytest.mark.parametrize(
    ("value", "text"),
    [
        ("a,b", r"a\,b"),
        ('a+b"c\\d<e>f;g=h', r"a\+b\"c\\d\<e\>f\;g\=h"),
        ("#1", r"\#1"),
        (" a ", r"\ a\ "),
        ("  ", r"\ \ "),
        ("Grüße", "Grüße"),
        ("名", "名"),
    ],
)
def test_special_characters_are_escaped(value, text):
    assert subject_of(certificate([(CN, value)])) == f"CN={text}"


def test_other_attributes_are_written_as_object_id_and_bytes():
    text = subject_of(certificate([(CN, "alice")], [(EMAIL, "a@b.c")]))
    assert text == "1.2.840.113549.1.9.1=#1605" + b"a@b.c".hex() + ",CN=alice"


def test_other_string_types_are_text_too():
    assert subject_of(certificate([(CN, "Grüße", _ASN1Type.BMPString)])) == "CN=Grüße"


@cache
def _undamaged():
    return certificate([(C, "DE")], [(CN, "alice")])  # signatures differ in length from one to the next


@settings(max_examples=300, deadline=None)
@given(st.data())
def test_damaged_certificates_raise_nothing_else(data):
    whole = bytearray(_undamaged())
    for _ in range(data.draw(st.integers(1, 4))):
        whole[data.draw(st.integers(0, len(whole) - 1))] = data.draw(st.integers(0, 255))
    try:
        assert isinstance(subject_of(bytes(whole[: data.draw(st.integers(0, len(whole)))])), str)
    except CertificateError:
        pass


@settings(max_examples=300, deadline=None)
@given(st.binary(max_size=80))
def test_random_bytes_raise_nothing_else(content):
    with pytest.raises(CertificateError):
        subject_of(content)
