use std::ops::Range;

use proptest::prelude::*;
use turn_map::{Atom, AtomBuilder, AtomKind, Atoms, CutPolicy, GroupState, Role, TurnMap, atoms};

use crate::parts::{Msg, call, result};
use crate::reference::{conversation, reference};

fn ranges(atoms: &Atoms) -> Vec<Range<usize>> {
    atoms.iter().map(Atom::range).collect()
}

fn policies(n: usize) -> [CutPolicy; 4] {
    [
        CutPolicy::LastMessages { messages: n },
        CutPolicy::FreshTail {
            messages: n,
            max_tokens: None,
        },
        CutPolicy::FreshTail {
            messages: n,
            max_tokens: Some(60),
        },
        CutPolicy::RecentTokens {
            tokens: n as u64 * 7,
        },
    ]
}

/// Returns a different cost for each message.
fn cost(position: usize) -> u64 {
    (position as u64 * 7919) % 23
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(256))]

    #[test]
    fn atoms_are_those_of_the_plain_rules(messages in conversation()) {
        let found = atoms(&messages);
        let expected = reference(&messages);
        prop_assert_eq!(ranges(&found), expected.atoms);
        let late: Vec<_> =
            found.iter().flat_map(Atom::late).map(|late| (late.message, late.call)).collect();
        prop_assert_eq!(late, expected.late);
        let unanswered: Vec<_> =
            found.iter().flat_map(Atom::unanswered).map(|call| call.message).collect();
        prop_assert_eq!(unanswered, expected.unanswered);
        for (call, result) in expected.pairs {
            prop_assert_eq!(found.index_of(call), found.index_of(result));
        }
    }

    #[test]
    fn atoms_partition_the_list(messages in conversation()) {
        let found = atoms(&messages);
        let mut next = 0;
        for (index, atom) in found.iter().enumerate() {
            prop_assert_eq!(atom.range().start, next);
            prop_assert!(!atom.range().is_empty());
            let counted = messages[atom.range()].iter().filter(|m| !m.note).count();
            prop_assert_eq!(atom.messages(), counted);
            prop_assert_eq!(atom.kind() == AtomKind::Note, counted == 0);
            for position in atom.range() {
                prop_assert_eq!(found.index_of(position), Some(index));
            }
            next = atom.range().end;
        }
        prop_assert_eq!(next, messages.len());
    }

    #[test]
    fn an_open_group_is_unsettled_and_by_default_of_the_latest_lines(messages in conversation()) {
        let found = atoms(&messages);
        let open = |atom: &Atom| atom.kind() == AtomKind::Group(GroupState::Open);
        prop_assert!(!found.settled().iter().any(open));
        let unsettled = &found.as_slice()[found.settled().len()..];
        // After the first unsettled atom, the only assistant messages are neighbouring messages with calls.
        let Some(first) = unsettled.first() else { return Ok(()) };
        let line = |m: &Msg| {
            m.role == Role::Assistant && m.response.is_none() && m.calls().next().is_some()
        };
        let said: Vec<&Msg> =
            messages[first.range().start..].iter().filter(|m| !m.note).collect();
        let lines = said.iter().take_while(|m| line(m)).count();
        let rest = if lines > 0 {
            &said[lines..]
        } else {
            &said[first.messages()..]
        };
        prop_assert!(rest.iter().all(|m| m.role != Role::Assistant), "{:?}", rest);
        prop_assert!(lines > 0 || unsettled.iter().skip(1).all(|atom| !open(atom)));
    }

    #[test]
    fn appending_changes_no_settled_atom(messages in conversation()) {
        let whole = atoms(&messages);
        for length in 0..=messages.len() {
            let prefix = atoms(&messages[..length]);
            let settled = prefix.settled();
            prop_assert_eq!(settled, &whole.as_slice()[..settled.len()]);
        }
    }

    #[test]
    fn a_list_that_begins_at_a_cut_has_the_same_atoms(
        messages in conversation(),
    ) {
        let whole = atoms(&messages);
        for (index, first) in whole.iter().enumerate() {
            let start = first.range().start;
            let mut builder = AtomBuilder::starting_at(start);
            messages[start..].iter().for_each(|message| builder.push(message));
            let rest = builder.finish();
            let same = |atom: &Atom| (atom.range(), atom.kind(), atom.unanswered().to_vec());
            let expected: Vec<_> = whole.as_slice()[index..].iter().map(same).collect();
            prop_assert_eq!(rest.iter().map(same).collect::<Vec<_>>(), expected);
        }
    }

    #[test]
    fn paging_equals_reading_at_once(
        messages in conversation(),
        page in 1..7_usize,
    ) {
        let whole = atoms(&messages);
        let mut builder = AtomBuilder::starting_at(0);
        let mut paged: Vec<Atom> = Vec::new();
        for page in messages.chunks(page) {
            page.iter().for_each(|message| builder.push(message));
            paged.extend(builder.drain_settled());
        }
        let rest = builder.finish();
        paged.extend(rest.iter().cloned());
        prop_assert_eq!(paged.as_slice(), whole.as_slice());
        prop_assert_eq!(rest.end(), whole.end());
        prop_assert_eq!(rest.settled_end(), whole.settled_end());
    }

    #[test]
    fn cuts_are_atom_boundaries_and_leave_unsettled_atoms(
        messages in conversation(),
    ) {
        let found = atoms(&messages);
        let turns = TurnMap::by_role(&messages);
        let boundary = |position| {
            position == messages.len() || found.iter().any(|atom| atom.range().start == position)
        };
        for policy in (0..12).flat_map(policies) {
            let cuts = policy.cuts(&found, &turns, cost);
            prop_assert!(boundary(cuts.tail().position()));
            prop_assert!(cuts.tail() <= found.settled_end());
        }
    }

    #[test]
    fn keeping_more_covers_less(messages in conversation()) {
        let found = atoms(&messages);
        let turns = TurnMap::by_role(&messages);
        for n in 0..12 {
            for (less, more) in policies(n).into_iter().zip(policies(n + 1)) {
                let tail = |policy: CutPolicy| policy.cuts(&found, &turns, cost).tail();
                prop_assert!(tail(more) <= tail(less), "{:?}", more);
            }
        }
    }

    #[test]
    fn only_the_latest_are_protected(messages in conversation(), n in 0..50_usize) {
        let found = atoms(&messages);
        let turns = TurnMap::by_role(&messages);
        let cuts = CutPolicy::LastMessages { messages: n }.cuts(&found, &turns, cost);
        let counted = |lines: &[Msg]| lines.iter().filter(|m| !m.note).count();
        let (old, kept) = cuts.tail().split(&messages);
        prop_assert!(counted(kept) >= n.min(counted(&messages)));
        if counted(&messages) < n {
            prop_assert_eq!(old.len(), 0);
        }
        // With one atom less, too few messages would be kept, unless settling or notes are the reason.
        let first = found.index_of(cuts.tail().position());
        let first = first.map(|index| &found.as_slice()[index]);
        if let Some(first) = first.filter(|atom| atom.messages() > 0)
            && cuts.tail() < found.settled_end()
        {
            prop_assert!(counted(kept) - first.messages() < n);
        }
    }

    #[test]
    fn a_limit_in_tokens_holds_unless_one_atom_breaks_it(
        messages in conversation(),
        most in 0..200_u64,
    ) {
        let found = atoms(&messages);
        let turns = TurnMap::by_role(&messages);
        let policy = CutPolicy::FreshTail { messages: 20, max_tokens: Some(most) };
        let priced = |n: usize| if messages[n].note { 0 } else { cost(n) };
        let cuts = policy.cuts(&found, &turns, priced);
        let tail = found.between(cuts.tail(), found.end());
        let sum: u64 = (cuts.tail().position()..messages.len()).map(priced).sum();
        let talking = tail.iter().filter(|atom| atom.messages() > 0).count();
        prop_assert!(sum <= most || talking <= 1 || cuts.tail() == found.settled_end());
    }

    #[test]
    fn every_cut_keeps_pairs_whole_and_has_its_turn(messages in conversation()) {
        let found = atoms(&messages);
        let turns = TurnMap::by_role(&messages);
        let pairs = reference(&messages).pairs;
        for policy in (0..12).flat_map(policies) {
            let cuts = policy.cuts(&found, &turns, cost);
            let mut places = vec![cuts.tail().position()];
            if let Some(start) = cuts.turn_start() {
                prop_assert!(start < cuts.tail());
                places.push(start.position());
            }
            for place in places {
                for (call, result) in &pairs {
                    prop_assert!((*call < place) == (*result < place), "{:?}", policy);
                }
            }
        }
    }

    /// Messages before the latest atom may be compacted, however large this atom is.
    #[test]
    fn limits_make_progress(messages in conversation()) {
        let found = atoms(&messages);
        let turns = TurnMap::by_role(&messages);
        let talking: Vec<_> = found.iter().filter(|atom| atom.messages() > 0).collect();
        prop_assume!(talking.len() > 1);
        let newest = talking[talking.len() - 1].range().start;
        for policy in [
            CutPolicy::RecentTokens { tokens: 1 },
            CutPolicy::FreshTail { messages: 20, max_tokens: Some(1) },
        ] {
            let tail = policy.cuts(&found, &turns, |_| u64::MAX).tail();
            prop_assert!(tail == found.settled_end() || tail.position() <= newest);
            let kept = found.between(tail, found.end());
            let kept = kept.iter().filter(|atom| atom.messages() > 0).count();
            prop_assert!(kept == 1 || tail == found.settled_end());
        }
    }

    #[test]
    fn turns_by_index_are_those_of_the_plain_rule(messages in conversation()) {
        let messages: Vec<_> = messages.into_iter().filter(|m| !m.note).collect();
        let map = TurnMap::by_index(&messages);
        let mut expected: Vec<Vec<usize>> = Vec::new();
        for (n, message) in messages.iter().enumerate() {
            let joins = n > 0 && message.turn.is_some() && message.turn == messages[n - 1].turn;
            match expected.last_mut() {
                Some(turn) if joins => turn.push(n),
                _ => expected.push(vec![n]),
            }
        }
        prop_assert_eq!(map.iter().map(Iterator::collect::<Vec<_>>).collect::<Vec<_>>(), expected);
        for n in 0..messages.len() {
            prop_assert!(map.range(map.turn_of(n).unwrap()).contains(&n));
        }
    }
}

/// No arrangement of calls and results takes quadratic time.
#[test]
fn a_hundred_thousand_messages_are_no_trouble() {
    let calls = |n: usize| Msg::new(Role::Assistant, vec![call(n.to_string())]);
    let answers = |n: usize| Msg::new(Role::Tool, vec![result(n.to_string())]);
    let ids = 0..50_000_usize;
    // One message with all calls, with results in the worst order, and then interleaved calls and results.
    let all = ids.clone().map(|n| call(n.to_string())).collect();
    let mut parallel = vec![Msg::new(Role::Assistant, all)];
    let scattered = ids.clone().map(|n| (n * 7_919) % 50_000);
    parallel.extend(scattered.clone().map(answers));
    let found = atoms(&parallel);
    assert_eq!(ranges(&found), vec![0..50_001]);

    let mut interleaved: Vec<_> = ids.clone().map(calls).collect();
    interleaved.extend(scattered.map(answers));
    // Neighbouring messages with calls are one group.
    assert_eq!(atoms(&interleaved).len(), 1);
    // Messages of different responses are not one group: each ends the one before, and all results but one are late.
    for (n, line) in interleaved.iter_mut().take(50_000).enumerate() {
        line.response = Some(n.to_string());
    }
    let found = atoms(&interleaved);
    let late: Vec<_> = found.iter().flat_map(Atom::late).collect();
    assert_eq!(late.len(), 49_999);
    assert!(late.iter().all(|late| late.call.is_some()));
    // Late results with one id, for as many calls.
    let mut same: Vec<_> = ids.clone().map(|_| calls(7)).collect();
    same.push(Msg::new(Role::Assistant, Vec::new()));
    same.extend(ids.clone().map(|_| answers(7)));
    let found = atoms(&same);
    let late = found.iter().flat_map(Atom::late);
    let mut calls: Vec<_> = late.filter_map(|late| late.call).collect();
    calls.sort_unstable();
    assert!(calls.into_iter().eq(ids));
}
