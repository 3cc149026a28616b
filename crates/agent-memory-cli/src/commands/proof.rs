//! `receipt` and `certify`: print anchors to keep outside of the database. `verify --against` compares them with it.

use std::collections::BTreeSet;
use std::fs::File;
use std::io::BufReader;
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
    /// Number of entries in a transcript.
    #[serde(skip_serializing_if = "Option::is_none")]
    entries: Option<u64>,
    /// Public key of a valid signature.
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
        let memory = self.memory;
        let file = path.display().to_string();
        let read = File::open(path).map_err(|error| unreadable(&file, Some(&error.to_string())))?;
        let values = serde_json::Deserializer::from_reader(BufReader::new(read));
        let mut values = values.into_iter::<Box<RawValue>>();
        let first = values.next().and_then(Result::ok);
        let format = first.as_deref().and_then(format_of).unwrap_or_default();
        let mut compared = Compared {
            file,
            kind: FileKind::Receipts,
            sessions: 0,
            entries: None,
            signed_by: None,
            violations: Vec::new(),
        };
        match (first, format.as_str()) {
            (Some(first), Receipt::FORMAT) => {
                let values = std::iter::once(Ok(first)).chain(values);
                let receipts: Vec<Receipt> = values
                    .map(|value| compared.parsed(value?.get()))
                    .collect::<anyhow::Result<_>>()?;
                let sessions = receipts.iter().map(|receipt| &receipt.session);
                compared.sessions = sessions.collect::<BTreeSet<_>>().len() as u64;
                compared.violations = check_receipts(memory, &receipts).await?;
            }
            (Some(first), Certificate::FORMAT) => {
                let certificate: Certificate = compared.parsed(first.get())?;
                compared.kind = FileKind::Certificate;
                compared.sessions = 1;
                compared.violations = certificate.check(memory).await?;
                compared.signature(&certificate, self.signer)?;
            }
            (_, format) if format.starts_with("agent-memory ") => {
                let text = format!("{} has the format {format}", compared.file);
                let failure = Failure::new(Kind::UnknownFormat, text);
                return Err(failure.hint("update the program").into());
            }
            _ => {
                let mut options = import::options_in(std::env::temp_dir());
                options.session.clone_from(&self.session);
                let transcript = import::read(path, &options)?;
                let check = check_transcript(memory, &transcript).await?;
                compared.kind = FileKind::Transcript;
                compared.sessions = check.sessions;
                compared.entries = Some(check.entries);
                compared.violations = check.violations;
            }
        }
        for violation in &mut compared.violations {
            violation.message = format!("{}: {}", compared.file, violation.message);
        }
        Ok(compared)
    }
}

impl Compared {
    fn parsed<'a, T: Deserialize<'a>>(&self, text: &'a str) -> anyhow::Result<T> {
        serde_json::from_str(text).map_err(|error| {
            let text = format!("{} is no receipt or certificate: {error}", self.file);
            let failure = Failure::new(Kind::Invalid, text);
            failure.hint("give the file as the program wrote it").into()
        })
    }

    fn signature(&mut self, certificate: &Certificate, signer: Option<&str>) -> anyhow::Result<()> {
        let (key, signature) = (&certificate.public_key, &certificate.signature);
        if (key, signature, signer) == (&None, &None, None) {
            return Ok(());
        }
        let bytes = |hex: &Option<String>| unhex(hex.as_deref().unwrap_or_default());
        let public = UnparsedPublicKey::new(&ED25519, bytes(key));
        let text = certificate.signed_text()?;
        let is_valid = public.verify(text.as_bytes(), &bytes(signature)).is_ok();
        let session = &certificate.log.session;
        let message = match signer {
            _ if !is_valid => {
                format!("{session}: the signature of the certificate is wrong or missing")
            }
            Some(signer) if key.as_deref() != Some(signer) => {
                format!("{session}: another key than {signer} has signed the certificate")
            }
            _ => {
                self.signed_by.clone_from(key);
                return Ok(());
            }
        };
        let violation = Violation::new(ViolationKind::CertificateDiffers, message);
        self.violations.push(violation);
        Ok(())
    }

    /// Returns the file in the form of text output.
    pub(super) fn line(&self) -> String {
        let of = match (self.kind, self.entries) {
            (FileKind::Receipts, _) => {
                format!(
                    "receipts of {}",
                    count(self.sessions, "session", "sessions")
                )
            }
            (FileKind::Transcript, Some(entries)) => {
                let sessions = count(self.sessions, "session", "sessions");
                let entries = count(entries, "entry", "entries");
                format!("a transcript of {sessions} with {entries}")
            }
            _ => match &self.signed_by {
                Some(key) => format!("a certificate, signed by {key}"),
                None => "a certificate without a valid signature".to_owned(),
            },
        };
        format!("compared with {}: {of}", self.file)
    }
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
