//! Personal data: the tests of addresses.

use std::net::{Ipv4Addr, Ipv6Addr};

use crate::redact::found::{Found, is_gap};

/// Returns whether an address is one of a person: not of an example, a program, or a file.
pub(super) fn is_email(found: &Found<'_>) -> bool {
    let lower = found.value.to_ascii_lowercase();
    let Some((local, domain)) = lower.split_once('@') else {
        return false;
    };
    let last = domain.rsplit('.').next().unwrap_or_default();
    let files = [
        "css",
        "gif",
        "html",
        "ico",
        "jpeg",
        "jpg",
        "js",
        "json",
        "local",
        "lock",
        "png",
        "service",
        "socket",
        "svg",
        "target",
        "timer",
        "ts",
        "tsx",
        "webp",
        "yaml",
        "yml",
        "example",
        "test",
        "invalid",
        "localhost",
    ];
    let of_example = [
        "example", "domain", "email", "test", "host", "company", "openssh",
    ];
    let programs = ["git", "noreply", "no-reply", "donotreply", "root"];
    let in_url = found.before.rsplit(is_gap).next().is_some_and(|before| {
        before
            .rsplit_once("://")
            .is_some_and(|(_, rest)| !rest.contains('/'))
    });
    !files.contains(&last)
        && !domain
            .rsplit('.')
            .nth(1)
            .is_some_and(|label| of_example.contains(&label))
        && !local.is_empty()
        && !programs.contains(&local)
        && !found.after.starts_with(['(', '@'])
        && !in_url
}

/// Returns whether a number with four parts is the address of one machine, and no version.
pub(super) fn is_ipv4(found: &Found<'_>) -> bool {
    let Ok(address) = found.value.parse::<Ipv4Addr>() else {
        return false;
    };
    let [first, second, _, last] = address.octets();
    // Versions have small numbers, object identifiers begin with two.
    let is_other = address.octets().iter().all(|part| *part < 20) || (first < 3 && second < 40);
    let is_special = address.is_loopback()
        || address.is_documentation()
        || address.is_link_local()
        || matches!(first, 0 | 255)
        || matches!(last, 0 | 255);
    let of_versions = ["version", "release", "upgrade", "update", "bump", "section"];
    let before = found.before.to_ascii_lowercase();
    let mut words = before.rsplit(is_gap).take(4);
    let is_version = words.any(|word| of_versions.iter().any(|name| word.contains(name)));
    let ends_there = !found
        .after
        .starts_with(|c: char| c.is_ascii_alphanumeric() || "._-".contains(c))
        || found.after.starts_with(". ")
        || found.after.starts_with(".\n")
        || found.after == ".";
    !is_special && !is_other && ends_there && !is_version
}

/// Returns whether groups of digits are the address of one machine.
pub(super) fn is_ipv6(found: &Found<'_>) -> bool {
    let Ok(address) = found.value.parse::<Ipv6Addr>() else {
        return false;
    };
    let groups = address.segments();
    let is_documentation = groups.starts_with(&[0x2001, 0xdb8]);
    found.value.matches(':').count() >= 4
        && groups.iter().filter(|group| **group != 0).count() >= 3
        && !is_documentation
        && found.value.contains(|c: char| c.is_ascii_digit())
        && !found.after.starts_with(|c: char| c.is_ascii_alphanumeric())
}
