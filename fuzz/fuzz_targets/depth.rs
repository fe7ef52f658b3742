#![no_main]

libfuzzer_sys::fuzz_target!(|data: &[u8]| pml_fuzz::depth_target(data));
