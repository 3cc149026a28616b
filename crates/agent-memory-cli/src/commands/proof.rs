//! `receipt` and `certify`: print anchors to keep outside of the database. `verify --against` compares them with it.

use std::collections::BTreeSet;
use std::fs::File;
use std::io::{BufRead as _, BufReader, Read as _};
use std::path::Path;

use agent_memory::store::proof::{Certificate, Receipt, check_receipts, check_transcript};
use agent_memory::store::{ConversationFilter, Violation, ViolationKind};
use agent_memory::{Memory, Session};
use base64::Engine as _;
use ring::signature::{ED25519, Ed25519KeyPair, KeyPair as _, UnparsedPublicKey};
use serde::{Deserialize, Serialize};
use serde_json::value::RawValue;

use super::import;
use crate::app::App;
use crate::args;
use crate::error::{Failure, Kind, unreadable};
use crate::output::{count, hex, quoted};

/// Number of bytes at the beginning of a file in which an anchor names its format.
const BEGINNING: usize = 64 << 10;

pub(crate) async fn receipt(app: &mut App, args: &args::Receipt) -> anyhow::Result<()> {
    let memory = app.open().await?;
    let mut sessions: Vec<Session> = Vec::new();
    for name in &args.sessions {
        sessions.push(app.session(&memory, name).await?);
    }
    if args.sessions.is_empty() {
        let mut filter = ConversationFilter::default();
        filter.archived = true;
        for info in memory.sessions(&filter).await? {
            sessions.push(memory.get_session(info.conversation.key).await?);
        }
    }
    for session in sessions {
        app.out.json_line(&Receipt::of(&session).await?)?;
    }
    Ok(())
}

pub(crate) async fn certify(app: &mut App, args: &args::Certify) -> anyhow::Result<()> {
    let key = args.key.as_deref().map(private_key).transpose()?;
    let memory = app.open().await?;
    let session = app.session(&memory, &args.session).await?;
    let name = quoted(session.key().as_str());
    let replay = |version| format!("agent-memory view --at {version} -- {name}");
    let mut certificate = Certificate::of(&session, args.budget, replay).await?;
    if let Some(key) = key {
        certificate.public_key = Some(hex(key.public_key().as_ref()));
        let signature = key.sign(certificate.signed_text()?.as_bytes());
        certificate.signature = Some(hex(signature.as_ref()));
    }
    Ok(app.out.json(&certificate)?)
}

/// A file that was compared with the database.
#[derive(Debug, Serialize)]
pub(super) struct Compared {
    file: String,
    kind: FileKind,
    /// Number of sessions in the file.
    sessions: u64,
    #[serde(skip)]
    pub(super) certificates: u64,
    /// Number of entries in a transcript.
    #[serde(skip_serializing_if = "Option::is_none")]
    entries: Option<u64>,
    /// Public key that has signed all certificates of the file.
    #[serde(skip_serializing_if = "Option::is_none")]
    signed_by: Option<String>,
    #[serde(skip)]
    pub(super) violations: Vec<Violation>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
enum FileKind {
    Receipts,
    Certificate,
    Transcript,
}

/// A database to compare with files.
#[derive(Debug)]
pub(super) struct Anchors<'a> {
    pub(super) memory: &'a Memory,
    /// Key of the session for transcripts that name none.
    pub(super) session: Option<String>,
    /// Public key that must have signed certificates, in hex digits.
    pub(super) signer: Option<&'a str>,
}

impl Anchors<'_> {
    /// Compares a file with the database. The content of the file tells its kind. Does not write.
    pub(super) async fn compare(&self, path: &Path) -> anyhow::Result<Compared> {
        let file = path.display().to_string();
        let unread = |error: std::io::Error| unreadable(&file, Some(&error.to_string()));
        let mut read = BufReader::with_capacity(BEGINNING, File::open(path).map_err(unread)?);
        let mut text = Vec::new();
        let start = read.fill_buf().unwrap_or_default();
        // Transcripts may be long, and are read in parts.
        let named = b"\"agent-memory ";
        if start.windows(named.len()).any(|part| part == named) {
            read.read_to_end(&mut text).map_err(unread)?;
        }
        let first = values(&text).find_map(|(_, value)| value);
        let is_anchor = first
            .and_then(format_of)
            .is_some_and(|format| format.starts_with("agent-memory "));
        let mut compared = Compared {
            file,
            kind: FileKind::Receipts,
            sessions: 0,
            certificates: 0,
            entries: None,
            signed_by: None,
            violations: Vec::new(),
        };
        if is_anchor {
            self.anchors(&text, &mut compared).await?;
        } else {
            drop(text);
            let mut options = import::options_in(std::env::temp_dir());
            options.session.clone_from(&self.session);
            let transcript = import::read(path, &options)?;
            let check = check_transcript(self.memory, &transcript).await?;
            compared.kind = FileKind::Transcript;
            compared.sessions = check.sessions;
            compared.entries = Some(check.entries);
            compared.violations = check.violations;
        }
        for violation in &mut compared.violations {
            violation.message = format!("{}: {}", compared.file, violation.message);
        }
        Ok(compared)
    }

    /// Compares the receipts and certificates of a text. A value that is neither is a violation, or an error if the text
    /// has no others.
    async fn anchors(&self, text: &[u8], compared: &mut Compared) -> anyhow::Result<()> {
        let mut receipts: Vec<Receipt> = Vec::new();
        let mut sessions = BTreeSet::new();
        let mut broken: Vec<Failure> = Vec::new();
        for (line, value) in values(text) {
            match anchor(line, value) {
                Ok(Anchor::Receipt(receipt)) => receipts.push(receipt),
                Ok(Anchor::Certificate(certificate)) => {
                    compared.certificates += 1;
                    let mut violations = certificate.check(self.memory).await?;
                    compared.violations.append(&mut violations);
                    compared.signature(&certificate, self.signer)?;
                    sessions.insert(certificate.log.session);
                }
                Err(failure) => broken.push(failure),
            }
        }
        if receipts.is_empty() {
            compared.kind = FileKind::Certificate;
        }
        if sessions.is_empty() && receipts.is_empty() && !broken.is_empty() {
            let mut failure = broken.swap_remove(0);
            failure.message = format!("{}: {}", compared.file, failure.message);
            return Err(failure.into());
        }
        let mut violations = check_receipts(self.memory, &receipts).await?;
        compared.violations.append(&mut violations);
        for failure in broken {
            let violation = Violation::new(ViolationKind::Other, failure.message);
            compared.violations.push(violation);
        }
        sessions.extend(receipts.into_iter().map(|receipt| receipt.session));
        compared.sessions = sessions.len() as u64;
        Ok(())
    }
}

impl Compared {
    /// Checks the signature of a certificate.
    fn signature(&mut self, certificate: &Certificate, signer: Option<&str>) -> anyhow::Result<()> {
        let (key, signature) = (&certificate.public_key, &certificate.signature);
        if (key, signature, signer) == (&None, &None, None) {
            self.signed_by = None;
            return Ok(());
        }
        let bytes = |hex: &Option<String>| unhex(hex.as_deref().unwrap_or_default());
        let text = certificate.signed_text()?;
        let is_valid = is_signed(&bytes(key), text.as_bytes(), &bytes(signature));
        let session = &certificate.log.session;
        let message = match signer {
            _ if !is_valid => {
                format!("{session}: the signature of the certificate is wrong or missing")
            }
            Some(signer) if bytes(key) != unhex(signer) => {
                format!("{session}: another key than {signer} has signed the certificate")
            }
            _ => {
                let is_same = self.certificates == 1 || self.signed_by == *key;
                self.signed_by = key.clone().filter(|_| is_same);
                return Ok(());
            }
        };
        let violation = Violation::new(ViolationKind::CertificateDiffers, message);
        self.violations.push(violation);
        self.signed_by = None;
        Ok(())
    }

    /// Returns the file in the form of text output.
    pub(super) fn line(&self) -> String {
        let sessions = count(self.sessions, "session", "sessions");
        let certificates = match self.certificates {
            1 => "a certificate".to_owned(),
            many => format!("{many} certificates"),
        };
        let certificates = match &self.signed_by {
            Some(key) => format!("{certificates}, signed by {key}"),
            None => format!("{certificates} without a valid signature"),
        };
        let of = match (self.kind, self.certificates) {
            (FileKind::Receipts, 0) => format!("receipts of {sessions}"),
            (FileKind::Receipts, _) => format!("receipts of {sessions}, and {certificates}"),
            (FileKind::Certificate, _) => certificates,
            (FileKind::Transcript, _) => {
                let entries = count(self.entries.unwrap_or_default(), "entry", "entries");
                format!("a transcript of {sessions} with {entries}")
            }
        };
        format!("compared with {}: {of}", self.file)
    }
}

/// Numbers of points of Ed25519 that sign any text: of the order 1, 2, 4 and 8. A point is 32 bytes of a number, the lowest
/// first, and of a sign, which is the highest bit.
const SMALL_ORDERS: [[u8; 32]; 5] = [
    [0; 32],
    ending(1, 0, 0),
    ending(0xec, 0xff, 0x7f),
    [
        0x26, 0xe8, 0x95, 0x8f, 0xc2, 0xb2, 0x27, 0xb0, 0x45, 0xc3, 0xf4, 0x89, 0xf2, 0xef, 0x98,
        0xf0, 0xd5, 0xdf, 0xac, 0x05, 0xd3, 0xc6, 0x33, 0x39, 0xb1, 0x38, 0x02, 0x88, 0x6d, 0x53,
        0xfc, 0x05,
    ],
    [
        0xc7, 0x17, 0x6a, 0x70, 0x3d, 0x4d, 0xd8, 0x4f, 0xba, 0x3c, 0x0b, 0x76, 0x0d, 0x10, 0x67,
        0x0f, 0x2a, 0x20, 0x53, 0xfa, 0x2c, 0x39, 0xcc, 0xc6, 0x4e, 0xc7, 0xfd, 0x77, 0x92, 0xac,
        0x03, 0x7a,
    ],
];

/// Returns 32 bytes with this first and last byte.
const fn ending(first: u8, between: u8, last: u8) -> [u8; 32] {
    let mut bytes = [between; 32];
    bytes[0] = first;
    bytes[31] = last;
    bytes
}

/// Returns whether a point is written in the only permitted way, and is not of a small order.
fn is_strong(point: &[u8]) -> bool {
    let Ok(mut number) = <[u8; 32]>::try_from(point) else {
        return false;
    };
    number[31] &= 0x7f;
    // The prime 2^255 − 19, from which on numbers repeat.
    let is_reduced = number
        .iter()
        .rev()
        .lt(ending(0xed, 0xff, 0x7f).iter().rev());
    is_reduced && !SMALL_ORDERS.contains(&number)
}

/// Returns whether a text has an Ed25519 signature by a key. A key that signs any text has signed none.
fn is_signed(key: &[u8], text: &[u8], signature: &[u8]) -> bool {
    let is_strong = is_strong(key) && signature.get(..32).is_some_and(is_strong);
    is_strong
        && UnparsedPublicKey::new(&ED25519, key)
            .verify(text, signature)
            .is_ok()
}

/// Fails for a key that cannot be the only one to have signed something.
pub(super) fn check_signer(signer: &str) -> Result<(), Failure> {
    if is_strong(&unhex(signer)) {
        return Ok(());
    }
    let text = "--signer is no Ed25519 public key, or a weak one, which signs any text";
    Err(Failure::new(Kind::Usage, text)
        .hint("give the 64 hex digits under public_key in a certificate of the signer"))
}

/// Returns the JSON values of a text with their lines. `None` is for a text that is no JSON, such as a torn line, which
/// ends before the next line that begins with `{`.
fn values(text: &[u8]) -> impl Iterator<Item = (usize, Option<&RawValue>)> {
    let (mut rest, mut line) = (text, 1);
    std::iter::from_fn(move || {
        let lines = |text: &[u8]| text.iter().filter(|byte| **byte == b'\n').count();
        let value = rest.trim_ascii_start();
        line += lines(rest) - lines(value);
        let mut read = serde_json::Deserializer::from_slice(value).into_iter::<&RawValue>();
        let found = read.next()?.ok();
        let end = match found {
            Some(_) => read.byte_offset(),
            None => value
                .windows(2)
                .position(|next| next == b"\n{")
                .unwrap_or(value.len()),
        };
        let at = line;
        let (passed, after) = value.split_at_checked(end)?;
        line += lines(passed);
        rest = after;
        Some((at, found))
    })
}

/// A receipt or a certificate.
enum Anchor {
    Receipt(Receipt),
    Certificate(Box<Certificate>),
}

/// Reads a receipt or a certificate.
fn anchor(line: usize, value: Option<&RawValue>) -> Result<Anchor, Failure> {
    let invalid = |why: String| {
        let text = format!("line {line} is no receipt or certificate: {why}");
        Failure::new(Kind::Invalid, text).hint("give the file as the program wrote it")
    };
    let value = value.ok_or_else(|| invalid("it is no JSON".to_owned()))?;
    let read = match format_of(value).as_deref() {
        Some(Receipt::FORMAT) => serde_json::from_str(value.get()).map(Anchor::Receipt),
        Some(Certificate::FORMAT) => serde_json::from_str(value.get()).map(Anchor::Certificate),
        Some(format) => {
            let text = format!("line {line} has the format {format}");
            return Err(Failure::new(Kind::UnknownFormat, text).hint("update the program"));
        }
        None => return Err(invalid("it names no format".to_owned())),
    };
    read.map_err(|error| invalid(error.to_string()))
}

/// Returns the name and version of the format of an anchor; `None` for another JSON value.
fn format_of(value: &RawValue) -> Option<String> {
    #[derive(Deserialize)]
    struct Named {
        format: String,
    }
    let named: Named = serde_json::from_str(value.get()).ok()?;
    Some(named.format)
}

/// Reads an Ed25519 private key in PEM.
fn private_key(path: &Path) -> Result<Ed25519KeyPair, Failure> {
    let name = path.display().to_string();
    let text = std::fs::read_to_string(path)
        .map_err(|error| unreadable(&name, Some(&error.to_string())))?;
    let lines = text.lines().map(str::trim);
    let lines = lines.skip_while(|line| *line != "-----BEGIN PRIVATE KEY-----");
    let body: String = lines
        .skip(1)
        .take_while(|line| !line.starts_with("-----"))
        .collect();
    let der = base64::engine::general_purpose::STANDARD.decode(body);
    let pair = der.map(|der| Ed25519KeyPair::from_pkcs8_maybe_unchecked(&der));
    match pair {
        Ok(Ok(pair)) => Ok(pair),
        _ => {
            let text = format!("{name} holds no Ed25519 private key in PEM");
            let hint = "make one: `openssl genpkey -algorithm ed25519 -out FILE`";
            Err(Failure::new(Kind::Invalid, text).hint(hint))
        }
    }
}

/// Returns the bytes of hex digits; no bytes if the text is not hex.
fn unhex(text: &str) -> Vec<u8> {
    let pairs = text.as_bytes().chunks(2);
    let bytes = pairs.map(|pair| u8::from_str_radix(std::str::from_utf8(pair).ok()?, 16).ok());
    bytes.collect::<Option<_>>().unwrap_or_default()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn weak_keys_sign_nothing() {
        let mut weak: Vec<[u8; 32]> = SMALL_ORDERS.to_vec();
        // The same numbers, written in another way, and numbers that are too large.
        weak.extend([0xed, 0xee, 0xff].map(|first| ending(first, 0xff, 0x7f)));
        for mut key in weak {
            for sign in [0, 0x80] {
                key[31] |= sign;
                assert!(!is_strong(&key), "{}", hex(&key));
                assert!(check_signer(&hex(&key)).is_err());
                // R = A and s = 0 hold for a key of the order 1.
                let signature = [&key[..], &[0; 32]].concat();
                assert!(!is_signed(&key, b"text", &signature));
            }
        }
        for odd in ["", "d75a", "zz", &"d7".repeat(33)] {
            assert!(check_signer(odd).is_err(), "{odd}");
        }
        // Test 1 of RFC 8032, section 7.1.
        let key = "d75a980182b10ab7d54bfed3c964073a0ee172f3daa62325af021a68f707511a";
        let signature = "e5564300c360ac729086e2cc806e828a84877f1eb8e5d974d873e065224901555fb8821590a33bacc61e39701cf9b46bd\
                         25bf5f0595bbe24655141438e7a100b";
        assert!(check_signer(key).is_ok());
        assert!(is_signed(&unhex(key), b"", &unhex(signature)));
        assert!(!is_signed(&unhex(key), b"x", &unhex(signature)));
    }
}
