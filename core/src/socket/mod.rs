//! Unix SEQPACKET sockets: messages keep their bounds, and each end knows the other's user and process.

#[cfg(test)]
pub(crate) mod faults;
mod listener;
mod peer;
mod refusals;
mod strike;
#[cfg(test)]
pub(crate) mod tests;

use std::io::{self, IoSlice, IoSliceMut};
use std::mem::MaybeUninit;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::time::Instant;

use rustix::event::{PollFd, Timespec};
use rustix::io::Errno;
use rustix::net::{
    AddressFamily, RecvAncillaryBuffer, RecvAncillaryMessage, RecvFlags, ReturnFlags,
    SendAncillaryBuffer, SendAncillaryMessage, SendFlags, SocketAddrUnix, SocketFlags, SocketType,
    recv, recvmsg, send, sendmsg, socket_with,
};

pub(crate) use listener::{Listener, Place, sweep};
pub(crate) use peer::Peer;
#[cfg(feature = "serde")]
pub(crate) use peer::{refuse_foreign, refuse_strangers};
pub(crate) use refusals::Refusals;
use strike::strike;

/// Most descriptors in one message.
pub(crate) const MAX_DESCRIPTORS: usize = 8;

/// What there was to read.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Received {
    /// One message, whole.
    Message(Vec<u8>),
    /// A message longer than allowed; it is lost.
    TooLong,
    /// Nothing yet.
    Nothing,
    /// The other end is closed.
    End,
}

/// One message with descriptors.
#[derive(Debug)]
pub(crate) struct Delivery {
    /// Its bytes.
    pub message: Vec<u8>,
    /// Copies of the sender's descriptors.
    pub descriptors: Vec<OwnedFd>,
}

/// Why a message with descriptors was not taken.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Untaken {
    /// It is none that was expected, in words; or the connection is closed.
    Unexpected(String),
    /// This process can open no more files.
    Full,
}

/// What an error of a call on a socket means.
pub(crate) fn explain(error: &io::Error) -> String {
    match error.raw_os_error().map(Errno::from_raw_os_error) {
        Some(Errno::MFILE) => full(),
        _ => error.to_string(),
    }
}

/// Whether this process can open no more files.
pub(crate) fn is_full() -> bool {
    new().is_err_and(|error| error.raw_os_error() == Some(Errno::MFILE.raw_os_error()))
}

/// That this process can open no more files.
pub(crate) fn full() -> String {
    let limit = rustix::process::getrlimit(rustix::process::Resource::Nofile);
    let limit = limit
        .current
        .map_or("no".to_owned(), |most| most.to_string());
    format!("this process has too many open files; raise its limit of {limit} (ulimit -n)")
}

/// A socket that never blocks and is not inherited by programs that this process starts.
pub(crate) fn new() -> io::Result<OwnedFd> {
    strike("socket", false)?;
    let flags = SocketFlags::CLOEXEC | SocketFlags::NONBLOCK;
    let socket = socket_with(AddressFamily::UNIX, SocketType::SEQPACKET, flags, None)?;
    Ok(socket)
}

/// Connects to an address. Never waits: a listener with a full queue is [`io::ErrorKind::WouldBlock`].
pub(crate) fn connect(address: &SocketAddrUnix) -> io::Result<OwnedFd> {
    let socket = new()?;
    strike("connect", false)?;
    rustix::net::connect(&socket, address)?;
    strike("connect", true)?;
    Ok(socket)
}

/// The next connection, if there is one.
pub(crate) fn accept(listener: &OwnedFd) -> io::Result<Option<OwnedFd>> {
    let flags = SocketFlags::CLOEXEC | SocketFlags::NONBLOCK;
    strike("accept", false)?;
    match rustix::net::accept_with(listener, flags) {
        Ok(socket) => strike("accept", true).map(|()| Some(socket)),
        Err(Errno::AGAIN | Errno::INTR | Errno::CONNABORTED) => Ok(None),
        Err(error) => Err(error.into()),
    }
}

/// Ends a connection for both sides. What the other end has sent is still there to be read; what it sends from now on is an
/// error for it.
pub(crate) fn end(connection: &OwnedFd) {
    // Fails where it has ended already.
    let _ = rustix::net::shutdown(connection, rustix::net::Shutdown::Both);
}

/// Sends one message, or tells with `false` that there is no room for it now.
pub(crate) fn send_message(socket: &OwnedFd, message: &[u8]) -> io::Result<bool> {
    match send(socket, message, SendFlags::NOSIGNAL | SendFlags::DONTWAIT) {
        Ok(_) => Ok(true),
        Err(Errno::AGAIN | Errno::INTR) => Ok(false),
        Err(error) => Err(error.into()),
    }
}

/// Takes one message of at most `limit` bytes.
pub(crate) fn receive_message(socket: &OwnedFd, limit: usize) -> Received {
    let mut message = vec![0; limit];
    loop {
        // TRUNC: the answer is the message's length, whatever fitted.
        let flags = RecvFlags::DONTWAIT | RecvFlags::TRUNC;
        match recv(socket, &mut message[..], flags) {
            Ok((_, 0)) => return Received::End,
            Ok((_, length)) if length > limit => return Received::TooLong,
            Ok((_, length)) => {
                message.truncate(length);
                return Received::Message(message);
            }
            Err(Errno::AGAIN) => return Received::Nothing,
            // The other end left something unread when it closed. The kernel says so once, and before it hands out what
            // the other end had sent.
            Err(Errno::INTR | Errno::CONNRESET) => {}
            Err(_) => return Received::End,
        }
    }
}

/// Sends one message with descriptors, which the other end gets copies of. `false`: there is no room for it now.
pub(crate) fn send_descriptors(
    socket: &OwnedFd,
    message: &[u8],
    descriptors: &[OwnedFd],
) -> io::Result<bool> {
    let descriptors: Vec<BorrowedFd<'_>> = descriptors.iter().map(AsFd::as_fd).collect();
    let mut space = [MaybeUninit::uninit(); rustix::cmsg_space!(ScmRights(MAX_DESCRIPTORS))];
    let mut control = SendAncillaryBuffer::new(&mut space);
    // The space is rounded up, and may have room for more.
    let fits = descriptors.len() <= MAX_DESCRIPTORS;
    if !fits || !control.push(SendAncillaryMessage::ScmRights(&descriptors)) {
        return Err(io::Error::other(format!(
            "{} descriptors in one message; at most {MAX_DESCRIPTORS} are possible",
            descriptors.len()
        )));
    }
    let flags = SendFlags::NOSIGNAL | SendFlags::DONTWAIT;
    strike("sendmsg", false)?;
    match sendmsg(socket, &[IoSlice::new(message)], &mut control, flags) {
        Ok(_) => strike("sendmsg", true).map(|()| true),
        Err(Errno::AGAIN | Errno::INTR) => Ok(false),
        Err(error) => Err(error.into()),
    }
}

/// Takes one message with exactly `count` descriptors; `None` when there is nothing yet.
///
/// # Errors
///
/// For any other number, a message of more than `limit` bytes, and a closed connection; and where this process cannot take
/// them. What descriptors came are closed.
pub(crate) fn receive_descriptors(
    socket: &OwnedFd,
    limit: usize,
    count: usize,
) -> Result<Option<Delivery>, Untaken> {
    let unexpected = |why| Err(Untaken::Unexpected(why));
    let mut message = vec![0; limit];
    let mut space = [MaybeUninit::uninit(); rustix::cmsg_space!(ScmRights(MAX_DESCRIPTORS))];
    let mut control = RecvAncillaryBuffer::new(&mut space);
    let flags = RecvFlags::DONTWAIT | RecvFlags::CMSG_CLOEXEC;
    let mut into = [IoSliceMut::new(&mut message)];
    let unread = |error: io::Error| Untaken::Unexpected(format!("nothing can be read: {error}"));
    strike("recvmsg", false).map_err(unread)?;
    let received = match recvmsg(socket, &mut into, &mut control, flags) {
        Ok(received) => received,
        Err(Errno::AGAIN | Errno::INTR) => return Ok(None),
        Err(error) => return Err(unread(error.into())),
    };
    let descriptors: Vec<OwnedFd> = control
        .drain()
        .filter_map(|part| match part {
            RecvAncillaryMessage::ScmRights(descriptors) => Some(descriptors),
            _ => None,
        })
        .flatten()
        .collect();
    // Beyond the space the kernel hands out none and says so; also when this process can open no more.
    if received.flags.contains(ReturnFlags::CTRUNC) {
        // There was space for these.
        if descriptors.len() < count {
            return Err(Untaken::Full);
        }
        return unexpected("too many descriptors were sent".to_owned());
    }
    if received.flags.contains(ReturnFlags::TRUNC) {
        return unexpected(format!("more than {limit} bytes"));
    }
    if received.bytes == 0 {
        return unexpected("it is closed".to_owned());
    }
    if descriptors.len() != count {
        return unexpected(format!("{} descriptors, not {count}", descriptors.len()));
    }
    message.truncate(received.bytes);
    Ok(Some(Delivery {
        message,
        descriptors,
    }))
}

/// A number that nobody can guess.
pub(crate) fn random() -> io::Result<u64> {
    let mut bytes = [0; 8];
    strike("getrandom", false)?;
    // So few come whole or not at all, and without waiting once the system has started.
    let length = rustix::rand::getrandom(&mut bytes, rustix::rand::GetRandomFlags::empty())?;
    match length == bytes.len() {
        true => Ok(u64::from_le_bytes(bytes)),
        false => Err(io::Error::other("the kernel gave no random number")),
    }
}

/// Waits until one of these can go on, at the longest until `deadline`.
pub(crate) fn poll(sockets: &mut [PollFd<'_>], deadline: Instant) -> io::Result<()> {
    let left = deadline.saturating_duration_since(Instant::now());
    let timeout = Timespec {
        tv_sec: left.as_secs().min(1 << 30) as i64,
        tv_nsec: left.subsec_nanos().into(),
    };
    strike("poll", false)?;
    match rustix::event::poll(sockets, Some(&timeout)) {
        Ok(_) | Err(Errno::INTR) => Ok(()),
        Err(error) => Err(error.into()),
    }
}
