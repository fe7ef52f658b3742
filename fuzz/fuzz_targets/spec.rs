#![no_main]

libfuzzer_sys::fuzz_target!(|data: &[u8]| {
    pml_fuzz::abort_on_our_panics();
    pml_fuzz::spec_target(data);
});
