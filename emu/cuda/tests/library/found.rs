//! Functions by symbol and version.

use std::ffi::{CStr, CString, c_char, c_int, c_void};

use libloading::os::unix::Library;
use slabfence_sys::{Api, CUdriverProcAddressQueryResult as Answer, CUresult, SYMBOLS};

use crate::build::built;

type GetProcAddress =
    unsafe extern "C" fn(*const c_char, *mut *mut c_void, c_int, u64, *mut Answer) -> CUresult;

/// The loaded library; nothing is called that needs a machine.
pub struct Loaded(Library);

impl Loaded {
    pub fn new() -> Loaded {
        // SAFETY: the library's initialisers do nothing.
        Loaded(unsafe { Library::new(built()) }.unwrap())
    }

    /// The address of an exported name.
    pub fn exported(&self, name: &str) -> Option<*const c_void> {
        let name = CString::new(name).unwrap();
        // SAFETY: only the address is taken, as a pointer.
        let found = unsafe { self.0.get::<*const c_void>(name) };
        found.ok().map(|symbol| symbol.as_raw_ptr().cast_const())
    }

    /// `cuGetProcAddress_v2`: code, address and answer.
    pub fn asked(
        &self,
        symbol: &CStr,
        version: c_int,
        flags: u64,
    ) -> (CUresult, *const c_void, Answer) {
        // SAFETY: the function has this ABI.
        let get = unsafe { self.0.get::<GetProcAddress>(c"cuGetProcAddress_v2") }.unwrap();
        let (mut address, mut answer) = (std::ptr::dangling_mut(), Answer::default());
        // SAFETY: a string and two places to write.
        let code = unsafe { get(symbol.as_ptr(), &mut address, version, flags, &mut answer) };
        (code, address.cast_const(), answer)
    }
}

impl Loaded {
    /// Those exported names that are found by symbol and version, which are the functions that do something.
    pub fn covered(&self, defined: &[String]) -> Vec<String> {
        let symbol = |name: &str| match name.rsplit_once("_v") {
            Some((symbol, number)) if number.parse::<u32>().is_ok() => symbol.to_owned(),
            _ => name.to_owned(),
        };
        let found = |name: &&String| {
            let (symbol, address) = (CString::new(symbol(name)).unwrap(), self.exported(name));
            let known = self.asked(&symbol, 13000, 0).0 == CUresult::CUDA_SUCCESS;
            let at = |version| Some(self.asked(&symbol, version, 0).1) == address;
            known && (2000..=13000).rev().step_by(10).any(at)
        };
        let mut covered: Vec<String> = defined.iter().filter(found).cloned().collect();
        covered.sort();
        covered
    }
}

#[test]
fn the_whole_table_is_found_at_its_versions() {
    let library = Loaded::new();
    for symbol in SYMBOLS.iter().filter(|symbol| symbol.version > 0) {
        let (code, address, _) = library.asked(symbol.name, symbol.version, 0);
        assert_eq!(code, CUresult::CUDA_SUCCESS, "{symbol:?}");
        assert!(!address.is_null(), "{symbol:?}");
        let (code, address, answer) = library.asked(symbol.name, 1000, 0);
        assert_eq!(
            (code, address),
            (CUresult::CUDA_ERROR_NOT_FOUND, std::ptr::null()),
            "{symbol:?}"
        );
        assert_eq!(answer, Answer::CU_GET_PROC_ADDRESS_VERSION_NOT_SUFFICIENT);
    }
}

#[test]
fn a_symbol_and_version_is_the_exported_abi_of_that_version() {
    let library = Loaded::new();
    for (symbol, version, exported) in [
        (c"cuMemAlloc", 3020, "cuMemAlloc_v2"),
        (c"cuMemAlloc", 13000, "cuMemAlloc_v2"),
        (
            c"cuStreamGetCaptureInfo",
            12020,
            "cuStreamGetCaptureInfo_v2",
        ),
        (
            c"cuStreamGetCaptureInfo",
            12030,
            "cuStreamGetCaptureInfo_v3",
        ),
        (c"cuEventElapsedTime", 12070, "cuEventElapsedTime"),
        (c"cuEventElapsedTime", 12080, "cuEventElapsedTime_v2"),
        (c"cuGetProcAddress", 11030, "cuGetProcAddress"),
        (c"cuGetProcAddress", 12000, "cuGetProcAddress_v2"),
    ] {
        let (_, address, _) = library.asked(symbol, version, 1);
        assert_eq!(
            Some(address),
            library.exported(exported),
            "{symbol:?} {version}"
        );
    }
}

#[test]
fn what_is_not_covered_is_not_found_though_it_is_exported() {
    let library = Loaded::new();
    assert!(library.exported("cuTexRefCreate").is_some());
    let not_found = (
        CUresult::CUDA_ERROR_NOT_FOUND,
        std::ptr::null(),
        Answer::CU_GET_PROC_ADDRESS_SYMBOL_NOT_FOUND,
    );
    assert_eq!(library.asked(c"cuTexRefCreate", 13000, 0), not_found);
    assert_eq!(library.asked(c"cuNoSuchFunction", 13000, 0), not_found);
    // Flag 2 asks for the default stream of each thread's own.
    assert_eq!(library.asked(c"cuMemAlloc", 13000, 2), not_found);
    // A version that this driver does not serve.
    assert_eq!(
        library.asked(c"cuMemAlloc", 13010, 0).0,
        CUresult::CUDA_ERROR_INVALID_VALUE
    );
}

guest_test! {
    fn slabfence_opens_it_as_a_driver_and_finds_its_whole_table() {
        let api = Api::open().unwrap();
        assert!(api.is_emulated());
        assert_eq!((api.driver_version, api.absent()), (13000, Vec::new()));
    }
}
