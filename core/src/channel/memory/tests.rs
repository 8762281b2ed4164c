//! How memory is given back.

use slabfence_sys::CUresult;

use super::*;
use crate::driver::fake;

#[test]
fn a_close_attempts_everything_and_tells_every_failure() {
    let contract = Contract::new(4, 64, 64, 8);
    let cut = Cut::new(&contract, 2, contract.staging(2).unwrap()).unwrap();
    let mut memory = Memory::allocate(&fake::device(), &contract, &cut).unwrap();
    fake::fail("cuMemUnmap", CUresult::CUDA_ERROR_OUT_OF_MEMORY);
    fake::calls();
    let said = memory.close().unwrap_err().to_string();
    let count = |name: &str| {
        let calls = fake::calls().into_iter();
        calls.filter(|call| call.starts_with(name)).count()
    };
    assert_eq!(count("cuMemUnmap"), 4);
    assert_eq!(said.matches("cuMemUnmap failed").count(), 4, "{said}");
    fake::fail("cuMemUnmap", CUresult::CUDA_SUCCESS);
    memory.close().unwrap();
    assert_eq!(count("cuMemRelease"), 4);
}
