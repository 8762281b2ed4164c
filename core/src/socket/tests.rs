use super::*;
use std::fs::File;
use std::io::Write;
use std::mem::MaybeUninit;
use std::panic::Location;

/// The number of the user as which [`as_another_user`] does things: nobody's.
pub(crate) const NOBODY: u32 = 65_534;

/// Does `body` on a thread of another user. Root has the right to that, unless a sandbox took it away; without it this says
/// that nothing was done, past the test harness, which shows what a test prints only when it fails.
#[track_caller]
pub(crate) fn as_another_user<T: Send>(body: impl FnOnce() -> T + Send) -> Option<T> {
    as_user(NOBODY, body)
}

/// [`as_another_user`] as the user with this number.
#[track_caller]
pub(crate) fn as_user<T: Send>(user: u32, body: impl FnOnce() -> T + Send) -> Option<T> {
    let rights = rustix::thread::capabilities(None).unwrap().effective;
    if !rights.contains(rustix::thread::CapabilitySet::SETUID) {
        let (place, why) = (Location::caller(), "nobody but root can act as one");
        let _ = writeln!(
            std::io::stderr().lock(),
            "NOTHING WAS TESTED of other users: {why} ({place})"
        );
        return None;
    }
    let user = rustix::process::Uid::from_raw(user);
    std::thread::scope(|threads| {
        let thread = threads.spawn(|| {
            rustix::thread::set_thread_res_uid(user, user, user).unwrap();
            body()
        });
        Some(thread.join().unwrap())
    })
}

fn pair() -> (OwnedFd, OwnedFd) {
    let flags = SocketFlags::CLOEXEC | SocketFlags::NONBLOCK;
    rustix::net::socketpair(AddressFamily::UNIX, SocketType::SEQPACKET, flags, None).unwrap()
}

fn descriptors(count: usize) -> Vec<OwnedFd> {
    (0..count)
        .map(|_| File::open("/dev/null").unwrap().into())
        .collect()
}

/// Sends any number of descriptors, as a stranger may.
fn send_any(socket: &OwnedFd, message: &[u8], count: usize) {
    let descriptors = descriptors(count);
    let borrowed: Vec<BorrowedFd<'_>> = descriptors.iter().map(AsFd::as_fd).collect();
    let mut space = [MaybeUninit::uninit(); rustix::cmsg_space!(ScmRights(64))];
    let mut control = SendAncillaryBuffer::new(&mut space);
    if count > 0 {
        assert!(control.push(SendAncillaryMessage::ScmRights(&borrowed)));
    }
    let message = [IoSlice::new(message)];
    sendmsg(socket, &message, &mut control, SendFlags::NOSIGNAL).unwrap();
}

/// Checks that a message of so many descriptors is refused where eight are expected, and eight bytes at most.
fn refused(count: usize, message: &[u8], words: &str) {
    let (here, there) = pair();
    send_any(&there, message, count);
    let said = receive_descriptors(&here, 8, MAX_DESCRIPTORS).unwrap_err();
    assert_eq!(said, Untaken::Unexpected(words.to_owned()));
}

#[test]
fn exactly_as_many_descriptors_as_expected_are_taken() {
    let (here, there) = pair();
    assert!(
        receive_descriptors(&here, 8, MAX_DESCRIPTORS)
            .unwrap()
            .is_none()
    );
    send_any(&there, &[1; 8], MAX_DESCRIPTORS);
    let came = receive_descriptors(&here, 8, MAX_DESCRIPTORS).unwrap();
    let came = came.unwrap();
    assert_eq!((came.message, came.descriptors.len()), (vec![1; 8], 8));
    let flags = rustix::io::fcntl_getfd(&came.descriptors[0]).unwrap();
    assert_eq!(flags, rustix::io::FdFlags::CLOEXEC);
}

#[test]
fn too_few_and_too_many_descriptors_and_too_long_messages_are_refused() {
    refused(0, &[1; 8], "0 descriptors, not 8");
    refused(MAX_DESCRIPTORS - 1, &[1; 8], "7 descriptors, not 8");
    // The kernel cuts them off, and may hand out as many as were expected.
    for count in [16, 64] {
        refused(count, &[1; 8], "too many descriptors were sent");
    }
    refused(MAX_DESCRIPTORS, &[1; 9], "more than 8 bytes");
}

#[test]
fn a_closed_connection_is_told_from_an_empty_one() {
    let (here, there) = pair();
    assert_eq!(receive_message(&here, 8), Received::Nothing);
    assert!(send_message(&there, &[2; 9]).unwrap());
    assert_eq!(receive_message(&here, 8), Received::TooLong);
    drop(there);
    assert_eq!(receive_message(&here, 8), Received::End);
    let said = receive_descriptors(&here, 8, 1).unwrap_err();
    assert_eq!(said, Untaken::Unexpected("it is closed".to_owned()));
}

#[test]
fn more_descriptors_than_a_message_holds_are_not_sent() {
    let (_here, there) = pair();
    let error = send_descriptors(&there, &[1; 8], &descriptors(MAX_DESCRIPTORS + 1)).unwrap_err();
    let words = "9 descriptors in one message; at most 8 are possible";
    assert_eq!(error.to_string(), words);
}

#[test]
fn a_peer_of_another_user_is_refused_on_both_ends() {
    let place = Place::of_meeting(None, random().unwrap());
    let listener = Listener::open(&place, Instant::now()).unwrap();
    let here = rustix::process::geteuid().as_raw();
    let refused = as_another_user(|| {
        let connection = connect(&place.address().unwrap()).unwrap();
        Peer::of(&connection).unwrap_err()
    });
    let Some(refused) = refused else { return };
    assert_eq!(
        refused,
        format!("it is of user {here}, and this process of user {NOBODY}")
    );
    let guest = accept(&listener.socket).unwrap().unwrap();
    assert_eq!(
        Peer::of(&guest).unwrap_err(),
        format!("it is of user {NOBODY}, and this process of user {here}")
    );
}

/// On a thread with a file mode mask of its own.
#[test]
#[allow(unsafe_code, reason = "the call is unsafe for other namespaces")]
fn a_sockets_file_is_the_users_alone_whatever_the_mask() {
    use std::os::unix::fs::PermissionsExt;
    let folder = std::env::temp_dir();
    let place = Place::of_meeting(Some(&folder), random().unwrap());
    let Place::File(path) = &place else {
        panic!("no file")
    };
    let mode = std::thread::scope(|threads| {
        let thread = threads.spawn(|| {
            // SAFETY: what is unsafe is to leave the table of descriptors, which this does not.
            unsafe { rustix::thread::unshare_unsafe(rustix::thread::UnshareFlags::FS) }.unwrap();
            rustix::process::umask(rustix::fs::Mode::empty());
            let _listener = Listener::open(&place, Instant::now()).unwrap();
            std::fs::metadata(path).unwrap().permissions().mode()
        });
        thread.join().unwrap()
    });
    assert_eq!(mode & 0o7777, 0o600);
    assert!(!path.exists());
}
