//! Processes of another user.

use std::fs::{Permissions, metadata, set_permissions};
use std::io::ErrorKind;
use std::os::unix::fs::{MetadataExt, PermissionsExt};
use std::sync::Barrier;

use super::super::frame::Frame;
use super::{Folder, answer, join, knock, on_ranks, soon};
use crate::error::Error;
use crate::group::Bootstrap;
use crate::socket;
use crate::socket::tests::{NOBODY, as_another_user};

#[test]
fn another_user_cannot_reach_the_socket_and_is_refused_where_it_can() {
    let folder = Folder::new();
    let tried = &Barrier::new(2);
    on_ranks(2, |rank| {
        if rank == 1 {
            drop(knock(&folder));
            // What keeps others out, also where none can be tried.
            let file = metadata(folder.socket()).unwrap();
            let here = rustix::process::geteuid().as_raw();
            assert_eq!((file.mode() & 0o777, file.uid()), (0o600, here));
            let address = folder.place().address().unwrap();
            let stranger = as_another_user(|| socket::connect(&address).unwrap_err().kind());
            assert!(stranger.is_none_or(|kind| kind == ErrorKind::PermissionDenied));
            // As in a folder whose file system keeps no rights.
            set_permissions(folder.socket(), Permissions::from_mode(0o666)).unwrap();
            let hello = Frame::Hello {
                rank: 1,
                world: 2,
                job: "job".to_owned(),
            };
            let said = as_another_user(|| {
                let stranger = socket::connect(&address).unwrap();
                // It may have been sent away already.
                let _ = socket::send_message(&stranger, &hello.encode(0));
                let said = answer(&stranger);
                assert_eq!(answer(&stranger), None);
                said
            });
            let why = format!("it is of user {NOBODY}, and this process of user {here}");
            assert!(said.is_none_or(|said| said == Some(Frame::Refused { why })));
            // A rank of another user does not take this hub for its own either.
            if let Some(joined) = as_another_user(|| join(&folder, 1, 2, 10_000)) {
                let Err(Error::Refused { why, .. }) = joined else {
                    panic!("{joined:?}");
                };
                let words = format!("is not ours: it is of user {here}, and");
                assert!(why.contains(&words), "{why}");
            }
        }
        // The rank itself still comes in.
        let member = join(&folder, rank, 2, 20_000).unwrap();
        assert_eq!(member.all_gather(b"x", soon(10_000)).unwrap().len(), 2);
        tried.wait();
    });
}
