//! Filling the table from a resolver: drivers of several versions, and drivers that lack something.

use core::ffi::{CStr, c_int, c_uint, c_void};
use std::collections::HashSet;
use std::sync::Arc;

use slabfence_sys::{Api, CUresult, LoadError, MissingSymbol, SYMBOLS, pfn};

const PRIVATE: [&str; 2] = ["slabfenceEmuVersion", "slabfenceEmuAnnounceRange"];
const SINCE_12_3: [&str; 3] = [
    "cuFuncGetName",
    "cuGraphGetEdges_v2",
    "cuStreamGetCaptureInfo_v3",
];
const SINCE_12_4: [&str; 2] = ["cuFuncLoad", "cuFuncGetParamInfo"];

/// What `cuDriverGetVersion` of a driver of version `V` does.
unsafe extern "C" fn version<const V: c_int>(version: *mut c_int) -> CUresult {
    // SAFETY: the caller passes a place for one int, as that function's contract says.
    unsafe { *version = V };
    CUresult::CUDA_SUCCESS
}

unsafe extern "C" fn version_of_a_stub(_: *mut c_int) -> CUresult {
    CUresult::CUDA_ERROR_STUB_LIBRARY
}

unsafe extern "C" fn version_that_fails(_: *mut c_int) -> CUresult {
    CUresult::CUDA_ERROR_OPERATING_SYSTEM
}

unsafe extern "C" fn init(flags: c_uint) -> CUresult {
    if flags == 0 {
        CUresult::CUDA_SUCCESS
    } else {
        CUresult::CUDA_ERROR_INVALID_VALUE
    }
}

unsafe extern "C" fn never_called() -> CUresult {
    CUresult::CUDA_ERROR_UNKNOWN
}

/// A driver in this process.
struct Fake {
    get_version: Option<pfn::cuDriverGetVersion>,
    lacks: &'static [&'static CStr],
    asked: Vec<(&'static CStr, c_int)>,
}

impl Fake {
    fn new(get_version: pfn::cuDriverGetVersion) -> Self {
        Self {
            get_version: Some(get_version),
            lacks: &[],
            asked: Vec::new(),
        }
    }

    fn lacking(get_version: pfn::cuDriverGetVersion, lacks: &'static [&'static CStr]) -> Self {
        Self {
            lacks,
            ..Self::new(get_version)
        }
    }

    fn load(&mut self) -> Result<Api, LoadError> {
        let mut resolve = |name: &CStr, version: c_int| -> *const c_void {
            let known = SYMBOLS
                .iter()
                .find(|symbol| symbol.name == name && symbol.version == version);
            let name = known.expect("only entries of the table are asked for").name;
            self.asked.push((name, version));
            if self.lacks.contains(&name) || version == 0 {
                return core::ptr::null();
            }
            match name.to_str() {
                Ok("cuDriverGetVersion") => self
                    .get_version
                    .map_or(core::ptr::null(), |f| f as *const c_void),
                Ok("cuInit") => init as pfn::cuInit as *const c_void,
                _ => never_called as *const c_void,
            }
        };
        // SAFETY: the entries that these tests call, `cuDriverGetVersion` and `cuInit`, have the
        // table's types; the others are not called.
        unsafe { Api::load(&mut resolve) }
    }
}

fn sorted<'a>(names: impl IntoIterator<Item = &'a str>) -> Vec<&'a str> {
    let mut names: Vec<_> = names.into_iter().collect();
    names.sort_unstable();
    names
}

#[test]
fn a_12_0_driver_lacks_only_what_came_later() {
    let api = Fake::new(version::<12000>).load().unwrap();
    assert_eq!(api.driver_version, 12000);
    assert_eq!(
        sorted(api.absent()),
        sorted(SINCE_12_3.into_iter().chain(SINCE_12_4).chain(PRIVATE))
    );
    assert!(
        api.cuLaunchKernelEx.is_some() && api.cuStreamGetId.is_some() && api.cuCtxGetId.is_some()
    );
    assert!(!api.is_emulated());
}

#[test]
fn a_12_3_driver_has_edge_data_and_function_names() {
    let api = Fake::new(version::<12030>).load().unwrap();
    assert_eq!(
        sorted(api.absent()),
        sorted(SINCE_12_4.into_iter().chain(PRIVATE))
    );
}

#[test]
fn a_13_0_driver_lacks_only_the_emulators_entries() {
    let api = Fake::new(version::<13000>).load().unwrap();
    assert_eq!(sorted(api.absent()), sorted(PRIVATE));
}

#[test]
fn entries_are_callable() {
    let api = Fake::new(version::<13000>).load().unwrap();
    // SAFETY: the fake's `init` takes any flags.
    let init = |flags| unsafe { (api.cuInit)(flags) };
    assert_eq!(init(0), CUresult::CUDA_SUCCESS);
    assert_eq!(init(1), CUresult::CUDA_ERROR_INVALID_VALUE);
}

#[test]
fn every_entry_is_asked_for_once_with_its_own_version() {
    let mut fake = Fake::new(version::<13000>);
    fake.load().unwrap();
    let (first, rest) = fake.asked.split_first().unwrap();
    assert_eq!(
        *first,
        (c"cuDriverGetVersion", 2020),
        "the version decides what else is asked for"
    );
    let table: Vec<_> = SYMBOLS
        .iter()
        .map(|symbol| (symbol.name, symbol.version))
        .collect();
    assert_eq!(rest, table);
}

#[test]
fn nothing_newer_than_the_driver_is_asked_for() {
    let mut fake = Fake::new(version::<12020>);
    fake.load().unwrap();
    assert_eq!(
        fake.asked.iter().map(|(_, version)| *version).max(),
        Some(12000)
    );
}

#[test]
fn a_missing_required_entry_is_named_with_both_versions() {
    let error = Fake::lacking(version::<12020>, &[c"cuLaunchKernel"])
        .load()
        .unwrap_err();
    let missing = MissingSymbol {
        name: "cuLaunchKernel",
        needs: 4000,
        driver: 12020,
    };
    assert_eq!(error, LoadError::MissingSymbol(missing));
    assert_eq!(
        error.to_string(),
        "cuLaunchKernel is missing, though a driver for CUDA 12.2 has it (since 4.0): a tool's library may stand in for \
         libcuda.so.1 (a profiler or debugger), run without it"
    );
}

#[test]
fn a_driver_below_a_required_entry_is_refused_with_what_it_needs() {
    let error = Fake::new(version::<11020>).load().unwrap_err();
    let missing = MissingSymbol {
        name: "cuDeviceGetUuid",
        needs: 11040,
        driver: 11020,
    };
    assert_eq!(error, LoadError::MissingSymbol(missing));
    assert_eq!(
        error.to_string(),
        "cuDeviceGetUuid needs a driver for CUDA 11.4 or newer, this one serves CUDA 11.2: update the driver"
    );
}

#[test]
fn an_absent_optional_entry_is_an_error_only_when_it_is_wanted() {
    let api = Fake::lacking(version::<12040>, &[c"cuFuncLoad"])
        .load()
        .unwrap();
    let missing = MissingSymbol {
        name: "cuFuncLoad",
        needs: 12040,
        driver: 12040,
    };
    assert_eq!(api.cuFuncLoad().unwrap_err(), missing);
    assert!(api.cuFuncGetParamInfo().is_ok());

    let older = Fake::new(version::<11080>).load().unwrap();
    assert_eq!(
        older.cuGraphAddKernelNode().unwrap_err().to_string(),
        "cuGraphAddKernelNode needs a driver for CUDA 12.0 or newer, this one serves CUDA 11.8: update the driver"
    );

    let private = api.slabfenceEmuVersion().unwrap_err();
    assert_eq!(
        private.to_string(),
        "slabfenceEmuVersion exists only in slabfence's emulated driver; this driver is not emulated (CUDA 12.4)"
    );
}

#[test]
fn a_second_version_of_a_symbol_is_an_entry_of_its_own() {
    let mut resolve = |name: &CStr, version: c_int| -> *const c_void {
        match (name.to_str(), version) {
            (Ok("cuDriverGetVersion"), _) => {
                self::version::<13000> as pfn::cuDriverGetVersion as *const c_void
            }
            (Ok("cuGraphGetEdges"), 10000) => 0x1000 as *const c_void,
            (Ok("cuGraphGetEdges"), 12030) => 0x2000 as *const c_void,
            _ => 0x3000 as *const c_void,
        }
    };
    // SAFETY: nothing but `cuDriverGetVersion` is called: the other addresses are only compared.
    let api = unsafe { Api::load(&mut resolve) }.unwrap();
    assert_eq!(api.cuGraphGetEdges.map(|f| f as usize), Some(0x1000));
    assert_eq!(api.cuGraphGetEdges_v2.map(|f| f as usize), Some(0x2000));
    assert!(api.is_emulated());
}

#[test]
fn the_toolkits_stub_is_recognised() {
    let error = Fake::new(version_of_a_stub).load().unwrap_err();
    assert_eq!(error, LoadError::StubLibrary);
    assert!(
        error
            .to_string()
            .contains("take the toolkit's `stubs` folder out of LD_LIBRARY_PATH"),
        "{error}"
    );
}

#[test]
fn a_driver_that_does_not_tell_its_version_is_refused() {
    let error = Fake::new(version_that_fails).load().unwrap_err();
    assert_eq!(
        error,
        LoadError::NoDriverVersion {
            code: Some(CUresult::CUDA_ERROR_OPERATING_SYSTEM)
        }
    );
    assert_eq!(
        error.to_string(),
        "cuDriverGetVersion failed with CUDA_ERROR_OPERATING_SYSTEM (304): reinstall the NVIDIA driver"
    );

    let mut fake = Fake {
        get_version: None,
        ..Fake::new(version_that_fails)
    };
    assert_eq!(
        fake.load().unwrap_err(),
        LoadError::NoDriverVersion { code: None }
    );
    assert_eq!(fake.asked.len(), 1, "nothing else is asked for");
}

#[test]
fn no_entry_is_listed_twice() {
    let entries: HashSet<_> = SYMBOLS.iter().map(|symbol| symbol.entry).collect();
    assert_eq!(entries.len(), SYMBOLS.len());
    let asked: HashSet<_> = SYMBOLS
        .iter()
        .map(|symbol| (symbol.name, symbol.version))
        .collect();
    assert_eq!(asked.len(), SYMBOLS.len());
}

#[test]
fn an_entry_is_its_symbol_or_a_later_version_of_it() {
    for symbol in SYMBOLS {
        let name = symbol.name.to_str().unwrap();
        let suffix = symbol.entry.strip_prefix(name).unwrap();
        assert!(
            matches!(suffix, "" | "_v2" | "_v3"),
            "{} is asked for as {name}",
            symbol.entry
        );
    }
}

/// A library that stands in for the driver under a profiler or debugger may lack anything else.
#[test]
fn required_is_only_what_nothing_can_do_without() {
    let required = SYMBOLS.iter().filter(|symbol| symbol.required);
    let names: Vec<_> = required.map(|symbol| symbol.entry).collect();
    assert_eq!(
        names,
        [
            "cuInit",
            "cuDriverGetVersion",
            "cuGetErrorName",
            "cuGetErrorString",
            "cuDeviceGetCount",
            "cuDeviceGet",
            "cuDeviceGetName",
            "cuDeviceGetUuid",
            "cuDeviceGetAttribute",
            "cuDevicePrimaryCtxRetain",
            "cuDevicePrimaryCtxRelease",
            "cuCtxPushCurrent",
            "cuCtxPopCurrent",
            "cuCtxGetCurrent",
            "cuMemAlloc",
            "cuMemFree",
            "cuStreamSynchronize",
            "cuModuleLoadDataEx",
            "cuModuleUnload",
            "cuModuleGetFunction",
            "cuLaunchKernel",
        ]
    );
    assert_eq!((names.len(), SYMBOLS.len()), (21, 104));
}

#[test]
fn a_driver_with_only_what_is_required_is_usable() {
    let mut resolve = |name: &CStr, _: c_int| -> *const c_void {
        let known = SYMBOLS.iter().find(|symbol| symbol.name == name);
        match known {
            Some(symbol) if symbol.entry == "cuDriverGetVersion" => {
                version::<13000> as pfn::cuDriverGetVersion as *const c_void
            }
            Some(symbol) if symbol.required => never_called as *const c_void,
            _ => core::ptr::null(),
        }
    };
    // SAFETY: nothing but `cuDriverGetVersion` is called.
    let api = unsafe { Api::load(&mut resolve) }.unwrap();
    let optional = SYMBOLS.iter().filter(|symbol| !symbol.required);
    let names: Vec<_> = optional.map(|symbol| symbol.entry).collect();
    assert_eq!(api.absent(), names);
}

#[test]
fn a_12_0_driver_suffices_for_all_that_is_required() {
    for symbol in SYMBOLS.iter().filter(|symbol| symbol.required) {
        assert!((2000..=12000).contains(&symbol.version), "{symbol:?}");
    }
}

#[test]
fn the_table_is_shared_between_threads() {
    fn shared<T: Clone + Send + Sync + 'static>(_: &T) {}
    let api = Arc::new(Fake::new(version::<13000>).load().unwrap());
    shared(&*api);
    let debug = format!("{api:?}");
    assert_eq!(
        debug,
        r#"Api { driver_version: 13000, emulated: false, absent: ["slabfenceEmuVersion", "slabfenceEmuAnnounceRange"], .. }"#
    );
}
