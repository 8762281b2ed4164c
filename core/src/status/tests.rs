use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};
use std::thread;
use std::time::{Duration, Instant};

use rustix::event::{PollFd, PollFlags};

use super::*;
use crate::socket::tests::{NOBODY, as_another_user, as_user};
use crate::socket::{self, Listener, Place};

/// A folder that everyone can use.
fn folder(name: &str) -> PathBuf {
    let folder = std::env::temp_dir().join(format!("slabfence-{name}-{}", std::process::id()));
    fs::create_dir_all(&folder).unwrap();
    fs::set_permissions(&folder, fs::Permissions::from_mode(0o777)).unwrap();
    folder
}

fn read_own(folder: &Path) -> Result<Option<Document>, String> {
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

/// Listens in the place of this process, for everybody, and gives `text` to the first that comes.
fn impostor(folder: &Path, text: &str) -> (Listener, thread::JoinHandle<()>) {
    let place = Place::of_status(folder, std::process::id());
    let soon = Instant::now() + Duration::from_secs(10);
    let listener = Listener::open(&place, soon).unwrap();
    let socket = listener.socket.try_clone().unwrap();
    let text = text.as_bytes().to_owned();
    let answers = thread::spawn(move || {
        let mut one = [PollFd::new(&socket, PollFlags::IN)];
        socket::poll(&mut one, soon).unwrap();
        if let Ok(Some(client)) = socket::accept(&socket) {
            // It may have gone.
            let _ = socket::send_message(&client, &text);
        }
    });
    (listener, answers)
}

#[test]
fn a_process_of_another_user_is_believed_by_root_alone() {
    let folder = folder("impostor");
    let text = serde_json::to_string(&Document::new(Vec::new())).unwrap();
    let reads = |user: u32| {
        let (listener, answers) = as_another_user(|| impostor(&folder, &text))?;
        let path = folder.join(format!("slabfence-{}.status", std::process::id()));
        fs::set_permissions(path, fs::Permissions::from_mode(0o666)).unwrap();
        let said = as_user(user, || read_own(&folder));
        answers.join().unwrap();
        drop(listener);
        said
    };
    for user in [0, NOBODY] {
        assert!(reads(user).is_none_or(|said| said.unwrap().is_some()));
    }
    let other = NOBODY - 1;
    let words = format!("it is of user {NOBODY}, and this process of user {other}");
    assert!(reads(other).is_none_or(|said| said.unwrap_err().contains(&words)));
    fs::remove_dir(&folder).unwrap();
}

#[test]
fn files_that_cannot_be_swept_keep_no_server_from_its_folder() {
    let folder = folder("swept");
    let bound = |name: &str| {
        let path = folder.join(name);
        let address = rustix::net::SocketAddrUnix::new(&path).unwrap();
        rustix::net::bind(socket::new().unwrap(), &address).unwrap();
        path
    };
    // Where nobody could connect to it.
    let long = folder.join(format!("slabfence-{}.door", "x".repeat(100)));
    fs::rename(bound("slabfence-a.door"), &long).unwrap();
    // Another user's, in a folder where nobody removes those.
    let dead = bound("slabfence-1.status");
    fs::set_permissions(&dead, fs::Permissions::from_mode(0o666)).unwrap();
    fs::set_permissions(&folder, fs::Permissions::from_mode(0o1777)).unwrap();
    let server = as_another_user(|| serve(&folder).unwrap());
    assert!(server.is_none() || dead.exists());
    drop(server);
    // One that can be is.
    drop(serve(&folder).unwrap());
    assert!(!dead.exists() && long.exists());
    fs::remove_file(long).unwrap();
    fs::remove_dir(&folder).unwrap();
}
