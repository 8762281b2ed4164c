use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::path::PathBuf;

use super::*;
use crate::socket::tests::as_another_user;

/// A folder that everyone can use.
fn folder(name: &str) -> PathBuf {
    let folder = std::env::temp_dir().join(format!("slabfence-{name}-{}", std::process::id()));
    fs::create_dir_all(&folder).unwrap();
    fs::set_permissions(&folder, fs::Permissions::from_mode(0o777)).unwrap();
    folder
}

fn read_own(folder: &std::path::Path) -> Result<Option<Document>, String> {
    read(folder, std::process::id())
}

#[test]
fn another_user_gets_no_connection_and_no_answer() {
    let folder = folder("stranger");
    let server = serve(&folder).unwrap();
    let told = read_own(&folder).unwrap().unwrap();
    assert_eq!(told.process, std::process::id());
    // What keeps others out, also where none can be tried.
    let mode = fs::metadata(server.path()).unwrap().permissions().mode();
    assert_eq!(mode & 0o777, 0o600);
    let refused = as_another_user(|| read_own(&folder).unwrap_err());
    // Even where the file lets everyone connect.
    fs::set_permissions(server.path(), fs::Permissions::from_mode(0o666)).unwrap();
    let unheard = as_another_user(|| read_own(&folder).unwrap_err());
    if let (Some(refused), Some(unheard)) = (refused, unheard) {
        assert!(refused.contains("Permission denied"), "{refused}");
        assert!(unheard.contains("it gave no answer"), "{unheard}");
    }
    drop(server);
    fs::remove_dir(&folder).unwrap();
}

#[test]
fn root_is_answered_by_every_users_process() {
    let folder = folder("root");
    let server = as_another_user(|| serve(&folder).unwrap());
    if let Some(server) = server {
        assert!(read_own(&folder).unwrap().is_some());
        drop(server);
    }
    fs::remove_dir(&folder).unwrap();
}
