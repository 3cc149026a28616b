//! Selects the documents that may contain adjacent characters from a sequence of character sets.

use std::collections::BTreeSet;
use std::sync::Arc;

use crate::Result;
use crate::segment::{
    CharSet, Entry, GROUP, find, gram_key, gram_of, groups, retain_groups, with_prefix,
};

use super::cache::Handle;
use super::candidates::{Candidates, common, of_groups};
use memory_store::IndexSegment;

/// Maximum number of runs of three characters that are looked up one by one. If more are possible, the runs of the
/// segment are read.
const MOST_LOOKED_UP: usize = 64;

/// Maximum number of documents that are read in place of one chunk, to find out which runs a segment contains. Reading
/// eight documents takes as long as reading one chunk.
const DOCUMENTS_A_CHUNK: u32 = 8;

/// Maximum number of occurrences of a place's runs in a segment, for each of its groups. If there are more, most groups
/// contain one of the runs.
const MOST_TIMES: usize = 4;

/// Number of chunks that may be read even if there are few documents.
const LEAST_CHUNKS: usize = 16;

/// The sets of three adjacent characters.
type Three<'n> = [&'n CharSet; 3];

/// A run of three characters.
type Run = [char; 3];

/// The runs of three characters that a segment contains for one place of the sequence, and the chunks with these runs.
#[derive(Clone, Default)]
struct Place {
    runs: BTreeSet<Run>,
    chunks: Vec<Arc<[u8]>>,
}

impl Handle<'_> {
    /// Returns the documents of a segment that may contain adjacent characters, one from each of these sets.
    ///
    /// A run is used only if other runs of the segment continue it in both directions to the ends of the sequence.
    pub(super) async fn side_by_side(
        &self,
        segment: &IndexSegment,
        sets: &[CharSet],
    ) -> Result<Candidates> {
        let threes: Vec<Three<'_>> = sets
            .windows(3)
            .filter_map(|three| match three {
                [a, b, c] => Some([a, b, c]),
                _ => None,
            })
            .collect();
        let mut places: Vec<Option<Place>> = Vec::new();
        for (at, three) in threes.iter().enumerate() {
            let before = threes.iter().take(at).position(|other| other == three);
            let known = before.and_then(|before| places.get(before));
            let place = match known {
                Some(place) => place.clone(),
                None => self.runs(segment, three).await?,
            };
            places.push(place);
        }
        keep_paths(&mut places);
        let mut seen: Vec<&BTreeSet<Run>> = Vec::new();
        let mut needed = Vec::new();
        let most = MOST_TIMES * (segment.documents / GROUP + 1) as usize;
        for (place, three) in places.iter().zip(&threes) {
            if let Some(place) = place
                && !seen.contains(&&place.runs)
            {
                seen.push(&place.runs);
                let found = PlaceEntries::read(place, three)?;
                if found.times <= most {
                    needed.push(found);
                }
            }
        }
        needed.sort_by_key(|found| found.times);
        let mut needed = needed.iter();
        let Some(rarest) = needed.next() else {
            return Ok(None);
        };
        let mut left = rarest.all()?;
        for found in needed {
            if left.is_empty() {
                break;
            }
            left = found.among(left)?;
        }
        Ok(Some(of_groups(&left, segment.documents)))
    }

    /// Returns the runs of a segment that match three sets. `None` if too many chunks would have to be read.
    async fn runs(&self, segment: &IndexSegment, three: &Three<'_>) -> Result<Option<Place>> {
        let possible = three.iter().map(|set| set.len());
        let possible = possible.fold(1, usize::saturating_mul);
        if possible <= MOST_LOOKED_UP {
            let mut keys: Vec<Vec<u8>> = Vec::new();
            let [first, second, third] = three;
            for a in first.iter() {
                for b in second.iter() {
                    keys.extend(
                        third
                            .iter()
                            .map(|c| gram_key(&String::from_iter([a, b, c]))),
                    );
                }
            }
            keys.sort_unstable();
            let found = self.chunks_of(segment, &keys, true).await?;
            let mut place = Place::default();
            for (key, chunk) in keys.iter().zip(found) {
                let Some(chunk) = chunk else { continue };
                if find(&chunk, key)?.is_some() {
                    place.runs.extend(run_of(key));
                    place.add(chunk);
                }
            }
            return Ok(Some(place));
        }
        let may_hold = |_: &[u8], beginning: &[u8]| may_begin(three, beginning);
        let most = LEAST_CHUNKS.max((segment.documents / DOCUMENTS_A_CHUNK) as usize);
        let all = gram_key("");
        let chunks = self.chunks_among(segment, &all, &may_hold, most);
        let Some(chunks) = chunks.await? else {
            return Ok(None);
        };
        let mut place = Place::default();
        for chunk in chunks {
            let before = place.runs.len();
            visit(&chunk, three, &mut |run, _| {
                place.runs.insert(run);
            })?;
            if place.runs.len() > before {
                place.chunks.push(chunk);
            }
        }
        Ok(Some(place))
    }
}

impl Place {
    /// Adds a chunk. Chunks must be added in order.
    fn add(&mut self, chunk: Arc<[u8]>) {
        let is_last = |last: &Arc<[u8]>| Arc::ptr_eq(last, &chunk);
        if !self.chunks.last().is_some_and(is_last) {
            self.chunks.push(chunk);
        }
    }
}

/// Returns whether a key with this beginning may be a run that matches three sets.
fn may_begin(three: &Three<'_>, beginning: &[u8]) -> bool {
    let Some(beginning) = gram_of(beginning) else {
        return true;
    };
    let pairs = beginning.chars().zip(three);
    pairs
        .into_iter()
        .all(|(c, set)| set.binary_search(&c).is_ok())
}

fn run_of(key: &[u8]) -> Option<Run> {
    let mut chars = gram_of(key)?.chars();
    Some([chars.next()?, chars.next()?, chars.next()?])
}

/// Calls `f` with each run in a chunk that matches three sets, and with its entry.
fn visit<'b>(chunk: &'b [u8], three: &Three<'_>, f: &mut dyn FnMut(Run, Entry<'b>)) -> Result<()> {
    with_prefix(chunk, &gram_key(""), &mut |key, entry| {
        if may_begin(three, key) {
            if let Some(run) = run_of(key) {
                f(run, entry);
            }
            return usize::MAX;
        }
        // Following keys that share as many bytes with this key do not match either.
        let may_follow = |end: &usize| may_begin(three, key.get(..*end).unwrap_or_default());
        (1..=key.len()).take_while(may_follow).last().unwrap_or(0)
    })
}

/// Keeps only runs that other runs continue at the next place and at the previous place.
fn keep_paths(places: &mut [Option<Place>]) {
    for at in 1..places.len() {
        let (before, behind) = places.split_at_mut(at);
        if let (Some(Some(before)), Some(Some(place))) = (before.last(), behind.first_mut()) {
            let ends: BTreeSet<[char; 2]> = before.runs.iter().map(|[_, b, c]| [*b, *c]).collect();
            place.runs.retain(|[a, b, _]| ends.contains(&[*a, *b]));
        }
    }
    for at in (1..places.len()).rev() {
        let (before, behind) = places.split_at_mut(at);
        if let (Some(Some(place)), Some(Some(behind))) = (before.last_mut(), behind.first()) {
            let begins = behind.runs.iter().map(|[a, b, _]| [*a, *b]);
            let begins: BTreeSet<[char; 2]> = begins.collect();
            place.runs.retain(|[_, b, c]| begins.contains(&[*b, *c]));
        }
    }
}

/// The entries of a segment for the runs of one place.
#[derive(Default)]
struct PlaceEntries<'p> {
    entries: Vec<Entry<'p>>,
    /// Sum of the numbers of groups of all runs. A group with two runs counts twice.
    times: usize,
}

impl<'p> PlaceEntries<'p> {
    fn read(place: &'p Place, three: &Three<'_>) -> Result<Self> {
        let mut found = Self::default();
        for chunk in &place.chunks {
            visit(chunk, three, &mut |run, entry| {
                if place.runs.contains(&run) {
                    found.times += entry.count as usize;
                    found.entries.push(entry);
                }
            })?;
        }
        Ok(found)
    }

    /// Returns the groups that contain one of the runs, in ascending order.
    fn all(&self) -> Result<Vec<u32>> {
        let mut all = Vec::with_capacity(self.times);
        for entry in &self.entries {
            all.extend(groups(entry)?);
        }
        all.sort_unstable();
        all.dedup();
        Ok(all)
    }

    /// Returns the groups in `left` that contain one of the runs. `left` must be in ascending order.
    fn among(&self, left: Vec<u32>) -> Result<Vec<u32>> {
        if self.times < left.len() * self.entries.len() {
            return Ok(common(vec![left, self.all()?]));
        }
        let mut among = Vec::new();
        for entry in &self.entries {
            let mut having = left.clone();
            retain_groups(entry, &mut having)?;
            among.extend(having);
        }
        among.sort_unstable();
        among.dedup();
        Ok(among)
    }
}
