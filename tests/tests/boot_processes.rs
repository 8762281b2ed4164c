//! A serving engine's boot by four ranks that are processes: memory is exported and imported, and the group is gone before
//! the last pool closes.

use slabfence_tests::processes::{Ending, Folder, Ranks};

const PROGRAM: &str = env!("CARGO_BIN_EXE_slabfence-test-rank");

/// Boots as this scenario, and finds nothing left.
fn boots(scenario: &str) {
    let folder = Folder::new();
    let ranks = Ranks::start(PROGRAM, scenario, folder.path(), &[0, 1, 2, 3], 4);
    let right = Ending::right();
    // All at once: the first that is wrong may only tell that another has ended.
    assert_eq!(ranks.finish(), vec![right; 4]);
    assert_eq!(folder.files(), 0);
}

#[test]
fn processes_whose_target_pushes_boot_serve_and_shut_down() {
    boots("boot");
}

#[test]
fn processes_whose_target_pulls_boot_serve_and_shut_down() {
    boots("boot:pull");
}
