use super::*;

fn frames() -> Vec<Frame> {
    let piece = Piece {
        total: 9,
        offset: 2,
        bytes: vec![1, 2, 3],
    };
    vec![
        Frame::Hello {
            rank: 1,
            world: 4,
            job: "job".to_owned(),
        },
        Frame::Welcome,
        Frame::Refused {
            why: "no".to_owned(),
        },
        Frame::Part {
            round: 5,
            serial: 6,
            piece: piece.clone(),
        },
        Frame::Withdraw {
            round: 5,
            serial: 6,
        },
        Frame::Result {
            round: 5,
            rank: 2,
            piece,
        },
        Frame::Missing {
            serial: 6,
            ranks: 5,
        },
        Frame::Left {
            serial: 6,
            ranks: 4,
        },
    ]
}

#[test]
fn every_frame_is_read_back() {
    for frame in frames() {
        assert_eq!(Frame::decode(&frame.encode(7)), Some((7, frame)));
    }
}

#[test]
fn a_frame_that_is_cut_or_too_long_or_of_another_protocol_is_none() {
    for frame in frames() {
        let bytes = frame.encode(7);
        let pieces = matches!(frame, Frame::Part { .. } | Frame::Result { .. });
        // A piece has no length of its own: cut, it is a shorter piece.
        let shortest = if pieces { 7 * 8 } else { bytes.len() - 1 };
        assert_eq!(Frame::decode(&bytes[..shortest]), None, "{frame:?}");
        let mut long = bytes.clone();
        long.extend([0; 8]);
        assert_eq!(Frame::decode(&long), None, "{frame:?}");
        let mut other = bytes;
        other[7] ^= 3;
        assert_eq!(Frame::decode(&other), None, "{frame:?}");
    }
    assert_eq!(Frame::decode(&[]), None);
    assert_eq!(Frame::decode(&[0xa5; 4096]), None);
}

#[test]
fn a_frame_of_another_version_is_told_by_both_and_anything_else_is_not() {
    for frame in frames() {
        let mut bytes = frame.encode(7);
        assert_eq!(Versions::of(&bytes), None);
        bytes[7] = b'2';
        let versions = Versions {
            there: '2',
            here: '1',
        };
        assert_eq!(Versions::of(&bytes), Some(versions));
        assert_eq!(Versions::of(&bytes[..7]), None);
        bytes[7] = 0;
        assert_eq!(Versions::of(&bytes), None);
        bytes[..8].copy_from_slice(b"slabfds2");
        assert_eq!(Versions::of(&bytes), None);
    }
}

#[test]
fn parts_are_cut_and_put_together_again() {
    for length in [0, 1, PIECE, PIECE + 1, 3 * PIECE] {
        let part: Vec<u8> = (0..length).map(|i| i as u8).collect();
        let mut assembly = Assembly::default();
        let mut whole = None;
        for piece in pieces(&part) {
            assert_eq!(whole, None);
            whole = assembly.add(&piece).unwrap();
        }
        assert!(whole.unwrap() == part, "{length}");
    }
}

#[test]
fn a_piece_out_of_its_turn_is_an_error() {
    let part = vec![7; 2 * PIECE + 1];
    let pieces: Vec<Piece> = pieces(&part).collect();
    let mut assembly = Assembly::default();
    assert_eq!(assembly.add(&pieces[0]), Ok(None));
    assert_eq!(assembly.add(&pieces[2]), Err(()));
    assert_eq!(assembly.add(&pieces[0]), Ok(None));
    assert_eq!(assembly.add(&pieces[1]), Ok(None));
    assert!(assembly.add(&pieces[2]).unwrap().is_some());
}

#[test]
fn whatever_comes_is_a_frame_that_reads_back_or_none() {
    // Marsaglia's xorshift, so that a failure comes again.
    let mut state = 0x9e37_79b9_7f4a_7c15u64;
    let mut random = move |below: usize| {
        state ^= state << 13;
        state ^= state >> 7;
        state ^= state << 17;
        (state % below as u64) as usize
    };
    let seeds: Vec<Vec<u8>> = frames().iter().map(|frame| frame.encode(7)).collect();
    let mut read = 0;
    for _ in 0..200_000 {
        let mut bytes = seeds[random(seeds.len())].clone();
        for _ in 0..random(4) {
            let at = random(bytes.len());
            bytes[at] = random(256) as u8;
        }
        bytes.truncate(random(bytes.len() + 40));
        if let Some((token, frame)) = Frame::decode(&bytes) {
            assert_eq!(frame.encode(token), bytes);
            read += 1;
        }
    }
    assert!(read > 1000, "{read}");
}
