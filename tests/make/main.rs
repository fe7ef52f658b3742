//! `make up` and `make down`, as somebody runs them who has just cloned the repository.

mod checkout;
mod pasted;
mod trouble;
