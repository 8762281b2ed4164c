//! Room for blocks on the devices of a held run.

use crate::occupancy::Room;
use crate::profile::Profile;

/// The multiprocessors of all devices.
#[derive(Clone, Debug)]
pub(super) struct Floor {
    rooms: Vec<Vec<Room>>,
    resident: Vec<u32>,
    cap: Option<u32>,
}

impl Floor {
    /// Empty devices, of which none takes more than `cap` blocks at once.
    pub(super) fn new(profile: &Profile, devices: usize, cap: Option<u32>) -> Floor {
        Floor {
            rooms: vec![vec![Room::of(profile); profile.sm_count as usize]; devices],
            resident: vec![0; devices],
            cap,
        }
    }

    /// Takes room for a block on the first multiprocessor from `first` on that has it.
    pub(super) fn take(&mut self, device: u32, block: Room, first: usize) -> Option<u32> {
        let device = device as usize;
        if self.cap.is_some_and(|cap| self.resident[device] >= cap) {
            return None;
        }
        let rooms = &mut self.rooms[device];
        let count = rooms.len();
        let sm = (0..count)
            .map(|i| (first + i) % count)
            .find(|&sm| rooms[sm].fits(block) > 0)?;
        rooms[sm].take(block);
        self.resident[device] += 1;
        Some(sm as u32)
    }

    /// Gives a block's room back.
    pub(super) fn give(&mut self, device: u32, block: Room, sm: u32) {
        self.rooms[device as usize][sm as usize].give(block);
        self.resident[device as usize] -= 1;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_cap_refuses_blocks_that_the_multiprocessors_have_room_for() {
        let profile = Profile::named("h200-nvlink").expect("a known profile");
        let block = Room::of(&profile);
        let mut floor = Floor::new(&profile, 2, Some(2));
        assert_eq!(floor.take(0, block, 130), Some(130));
        assert_eq!(floor.take(0, block, 130), Some(131));
        assert_eq!(floor.take(0, block, 130), None);
        assert_eq!(floor.take(1, block, 0), Some(0), "another device's room");
        floor.give(0, block, 131);
        assert_eq!(floor.take(0, block, 0), Some(0));
    }

    #[test]
    fn a_full_multiprocessor_is_passed_over() {
        let profile = Profile::named("h200-nvlink").expect("a known profile");
        let block = Room::of(&profile);
        let mut floor = Floor::new(&profile, 1, None);
        let taken: Vec<_> = (0..133).map(|_| floor.take(0, block, 131)).collect();
        assert_eq!(taken[..3], [Some(131), Some(0), Some(1)]);
        assert_eq!(taken[132], None);
    }
}
