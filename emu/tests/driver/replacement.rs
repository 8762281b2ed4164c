//! Entries that take the place of others.

use slabfence_sys::*;

use crate::gpu::{Gpu, PTX};
use crate::module::{load, text};

/// A text with one entry.
fn replacement(entry: &str) -> String {
    format!(".version 7.0\n.target sm_80\n.address_size 64\n{entry}")
}

/// Stores 7 where the `iota` of the tests would count from its second parameter.
const SEVENS: &str = "
.visible .entry iota(.param .u64 iota_to, .param .u64 iota_from)
{
    .reg .b32 %r<4>;
    .reg .b64 %rd<3>;
    ld.param.u64 %rd1, [iota_to];
    mov.u32 %r1, %tid.x;
    mul.wide.u32 %rd2, %r1, 4;
    add.s64 %rd1, %rd1, %rd2;
    mov.u32 %r2, 7;
    st.global.u32 [%rd1], %r2;
    ret;
}
";

#[test]
fn a_replaced_entry_runs_in_texts_loaded_before_and_later_and_other_entries_stay() {
    let gpu = Gpu::new(1);
    let before = gpu.module(PTX);
    let stream = gpu.stream();
    let at = gpu.alloc(16);
    let iota = |module| {
        let iota = gpu.function(module, "iota");
        let launched = gpu.launch(iota, 1, 4, stream, &[at.0, 20]);
        assert_eq!(launched, CUresult::CUDA_SUCCESS);
        ok!((gpu.api.cuStreamSynchronize)(stream));
        gpu.read(at, 4)
    };
    assert_eq!(iota(before), [20, 21, 22, 23]);
    let text = replacement(SEVENS);
    assert_eq!(
        gpu.machine.replace_entries(&text),
        Ok(vec!["iota".to_owned()])
    );
    let after = gpu.module(PTX);
    for module in [before, after] {
        assert_eq!(iota(module), [7, 7, 7, 7]);
        // It uses the module's variables, which the text above does not have.
        let (globals, mut counter, mut bytes) =
            (gpu.function(module, "globals"), CUdeviceptr(0), 0);
        ok!((gpu.api.cuModuleGetGlobal.unwrap())(
            &mut counter,
            &mut bytes,
            module,
            c"counter".as_ptr()
        ));
        assert_eq!(gpu.read(counter, 1), [7]);
        let launched = gpu.launch(globals, 1, 1, stream, &[at.0]);
        assert_eq!(launched, CUresult::CUDA_SUCCESS);
        ok!((gpu.api.cuStreamSynchronize)(stream));
        assert_eq!(gpu.read(counter, 1), [8]);
    }
    gpu.free(at);
    ok!((gpu.api.cuStreamDestroy.unwrap())(stream));
    for module in [before, after] {
        ok!((gpu.api.cuModuleUnload)(module));
    }
    gpu.clean();
}

#[test]
fn an_entry_that_is_loaded_is_not_replaced_by_one_with_other_parameters() {
    let gpu = Gpu::new(1);
    let module = gpu.module(PTX);
    let narrow = SEVENS.replace(", .param .u64 iota_from", "");
    let error = gpu.machine.replace_entries(&replacement(&narrow));
    assert_eq!(
        error.unwrap_err().to_string(),
        "the PTX text is not accepted: entry `iota` cannot be replaced: its parameters are of 8, 8 bytes, those of the \
         entry in its place of 8 bytes"
    );
    ok!((gpu.api.cuModuleUnload)(module));
    let module = gpu.module(PTX);
    ok!((gpu.api.cuModuleUnload)(module));
    gpu.clean();
}

#[test]
fn of_two_replacements_the_newer_counts() {
    let gpu = Gpu::new(1);
    let eights = SEVENS.replace("%r2, 7", "%r2, 8");
    for text in [SEVENS, &eights] {
        assert!(gpu.machine.replace_entries(&replacement(text)).is_ok());
    }
    let (module, stream, at) = (gpu.module(PTX), gpu.stream(), gpu.alloc(4));
    let iota = gpu.function(module, "iota");
    let launched = gpu.launch(iota, 1, 1, stream, &[at.0, 20]);
    assert_eq!(launched, CUresult::CUDA_SUCCESS);
    ok!((gpu.api.cuStreamSynchronize)(stream));
    assert_eq!(gpu.read(at, 1), [8]);
}

#[test]
fn a_module_whose_entry_would_get_other_parameters_is_refused() {
    let gpu = Gpu::new(1);
    let narrow = SEVENS.replace(", .param .u64 iota_from", "");
    assert!(gpu.machine.replace_entries(&replacement(&narrow)).is_ok());
    let (code, log) = load(&gpu, &text(PTX));
    assert_eq!(code, CUresult::CUDA_ERROR_INVALID_PTX);
    assert_eq!(
        log,
        "entry `iota` cannot be replaced: its parameters are of 8, 8 bytes, those of the entry in its place of 8 bytes"
    );
    gpu.clean();
}

#[test]
fn a_replacement_that_would_not_load_or_uses_variables_is_refused() {
    let gpu = Gpu::new(1);
    let refused = |text: &str| gpu.machine.replace_entries(text).unwrap_err().to_string();
    let wrong = refused(&replacement(&SEVENS.replace("mul.wide", "frobnicate")));
    assert!(
        wrong.starts_with("the PTX text is not accepted: line 11:"),
        "{wrong}"
    );
    let newer = refused(&replacement(SEVENS).replace("7.0", "9.9"));
    assert!(
        newer.ends_with("PTX .version 9.9: this driver takes up to 9.0"),
        "{newer}"
    );
    let address = SEVENS.replace("mov.u32 %r2, 7;", "ld.global.u32 %r2, [seven];");
    let variable = refused(&replacement(&format!(".global .u32 seven = 7;\n{address}")));
    assert_eq!(
        variable,
        "the PTX text is not accepted: line 4: variable `seven`, which `iota` uses: entries that replace others have no \
         variables of their own"
    );
    // Nothing of them is left.
    let module = gpu.module(PTX);
    ok!((gpu.api.cuModuleUnload)(module));
    gpu.clean();
}

#[test]
fn variables_that_no_entry_uses_do_not_keep_a_text_from_replacing_entries() {
    let gpu = Gpu::new(1);
    let before = gpu.module(PTX);
    let text = replacement(&format!(
        ".global .u32 a = 1;\n.global .u32 b = 2;\n{SEVENS}"
    ));
    assert_eq!(
        gpu.machine.replace_entries(&text),
        Ok(vec!["iota".to_owned()])
    );
    let (stream, at) = (gpu.stream(), gpu.alloc(4));
    for module in [before, gpu.module(PTX)] {
        ok!((gpu.api.cuMemsetD32Async.unwrap())(at, 0, 1, stream));
        let iota = gpu.function(module, "iota");
        let launched = gpu.launch(iota, 1, 1, stream, &[at.0, 20]);
        assert_eq!(launched, CUresult::CUDA_SUCCESS);
        ok!((gpu.api.cuStreamSynchronize)(stream));
        assert_eq!(gpu.read(at, 1), [7]);
        ok!((gpu.api.cuModuleUnload)(module));
    }
    gpu.free(at);
    ok!((gpu.api.cuStreamDestroy.unwrap())(stream));
    gpu.clean();
}
