//! The identity files.

use std::fs;
use std::os::unix::fs::{PermissionsExt as _, symlink};
use std::path::Path;

use retrieval_tools::IdentityFiles;

fn mode(path: &Path) -> u32 {
    fs::metadata(path).unwrap().permissions().mode() & 0o777
}

/// A project is often cloned, so the links in it are those of a stranger.
#[test]
fn links_of_a_project_are_neither_read_nor_written() {
    let (home, project) = (tempfile::tempdir().unwrap(), tempfile::tempdir().unwrap());
    let secret = home.path().join("secret");
    fs::write(&secret, "the key").unwrap();
    let user = home.path().join("me");
    fs::create_dir(&user).unwrap();
    fs::write(user.join("USER.md"), "Ada.").unwrap();
    let own = project.path().join(".agents");
    fs::create_dir(&own).unwrap();
    for name in ["SOUL.md", "user.md"] {
        symlink(&secret, own.join(name)).unwrap();
    }
    fs::write(own.join("MEMORY.md"), "R7.").unwrap();
    symlink(&secret, own.join("MEMORY.md.new")).unwrap();
    let files = IdentityFiles::new(&user).with_project(project.path());
    assert_eq!(
        files.text().unwrap(),
        "# USER.md\n\nAda.\n\n# MEMORY.md\n\nR7."
    );
    assert_eq!(files.read("SOUL.md").unwrap(), "");
    for name in ["SOUL.md", "USER.md", "MEMORY.md"] {
        files.write(name, &format!("new {name}")).unwrap();
        assert_eq!(files.read(name).unwrap(), format!("new {name}"));
    }
    assert_eq!(fs::read_to_string(&secret).unwrap(), "the key");
    assert_eq!(
        fs::read_to_string(own.join("MEMORY.md")).unwrap(),
        "new MEMORY.md"
    );
    assert_eq!(
        fs::read_to_string(user.join("SOUL.md")).unwrap(),
        "new SOUL.md"
    );
    // The folder itself may be a link as well.
    let other = tempfile::tempdir().unwrap();
    symlink(&own, other.path().join(".agents")).unwrap();
    let files = IdentityFiles::new(&user).with_project(other.path());
    assert_eq!(files.read("MEMORY.md").unwrap(), "");
}

#[test]
fn a_file_keeps_its_permissions_and_concurrent_writes_do_not_mix() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("USER.md");
    for permissions in [0o600, 0o640] {
        fs::write(&path, "old").unwrap();
        fs::set_permissions(&path, fs::Permissions::from_mode(permissions)).unwrap();
        let files = IdentityFiles::new(folder.path());
        files.write("USER.md", "new").unwrap();
        assert_eq!(mode(&path), permissions);
    }
    let texts = ["a", "b", "c", "d"].map(|text| text.repeat(60_000));
    std::thread::scope(|scope| {
        for text in &texts {
            scope.spawn(|| {
                let files = IdentityFiles::new(folder.path());
                for _ in 0..50 {
                    files.write("USER.md", text).unwrap();
                    assert!(texts.contains(&files.read("USER.md").unwrap()));
                }
            });
        }
    });
    assert_eq!(fs::read_dir(folder.path()).unwrap().count(), 1);
}
