//! The native half of URL, TextEncoder, TextDecoder and crypto.

use std::cell::RefCell;

use encoding_rs::{DecoderResult, Encoding};
use rquickjs::{Ctx, Exception, Function, Object, Result, TypedArray, function::Opt};
use url::{Url, form_urlencoded, quirks};

use super::text::Text;

pub(crate) fn install<'js>(ctx: &Ctx<'js>, native: &Object<'js>) -> Result<()> {
    let add = |name: &str, function: Result<Function<'js>>| native.set(name, function?);
    add("parseUrl", Function::new(ctx.clone(), parse_url))?;
    add("urlPart", Function::new(ctx.clone(), url_part))?;
    add("setUrlPart", Function::new(ctx.clone(), set_url_part))?;
    add("parseQuery", Function::new(ctx.clone(), parse_query))?;
    add("formatQuery", Function::new(ctx.clone(), format_query))?;
    add("encode", Function::new(ctx.clone(), encode))?;
    add("encodingName", Function::new(ctx.clone(), encoding_name))?;
    add("decoder", Function::new(ctx.clone(), decoder))?;
    add("random", Function::new(ctx.clone(), random))
}

fn parse_url(url: Text, base: Opt<Option<Text>>) -> Option<String> {
    let base = base.0.flatten().map(|base| Url::parse(&base.0)).transpose().ok()?;
    Some(Url::options().base_url(base.as_ref()).parse(&url.0).ok()?.into())
}

fn url_part(href: Text, part: Text) -> Option<String> {
    let url = Url::parse(&href.0).ok()?;
    let text = match part.0.as_str() {
        "origin" => return Some(quirks::origin(&url)),
        "protocol" => quirks::protocol(&url),
        "username" => quirks::username(&url),
        "password" => quirks::password(&url),
        "host" => quirks::host(&url),
        "hostname" => quirks::hostname(&url),
        "port" => quirks::port(&url),
        "pathname" => quirks::pathname(&url),
        "search" => quirks::search(&url),
        _ => quirks::hash(&url),
    };
    Some(text.to_owned())
}

/// The URL with one part changed; unchanged if the value is invalid for it.
fn set_url_part(href: Text, part: Text, value: Text) -> Option<String> {
    let mut url = Url::parse(&href.0).ok()?;
    let (url_mut, value) = (&mut url, value.0.as_str());
    // The standard has setters ignore what they can't use.
    let _ = match part.0.as_str() {
        "protocol" => quirks::set_protocol(url_mut, value),
        "username" => quirks::set_username(url_mut, value),
        "password" => quirks::set_password(url_mut, value),
        "host" => quirks::set_host(url_mut, value),
        "hostname" => quirks::set_hostname(url_mut, value),
        "port" => quirks::set_port(url_mut, value),
        "pathname" => {
            quirks::set_pathname(url_mut, value);
            Ok(())
        }
        "search" => {
            quirks::set_search(url_mut, value);
            Ok(())
        }
        _ => {
            quirks::set_hash(url_mut, value);
            Ok(())
        }
    };
    Some(url.into())
}

fn parse_query(query: Text) -> Vec<Vec<String>> {
    form_urlencoded::parse(query.0.as_bytes())
        .map(|(name, value)| vec![name.into_owned(), value.into_owned()])
        .collect()
}

fn format_query(pairs: Vec<Vec<Text>>) -> String {
    let mut query = form_urlencoded::Serializer::new(String::new());
    for pair in &pairs {
        if let [name, value] = pair.as_slice() {
            query.append_pair(&name.0, &value.0);
        }
    }
    query.finish()
}

fn encode<'js>(ctx: Ctx<'js>, text: Text) -> Result<TypedArray<'js, u8>> {
    TypedArray::new_copy(ctx, text.0)
}

fn encoding_name(label: Text) -> Option<String> {
    Some(Encoding::for_label(label.0.as_bytes())?.name().to_lowercase())
}

/// A function of bytes and whether they are the last; gives the text, or undefined if they are invalid and `fatal`.
fn decoder<'js>(ctx: Ctx<'js>, label: Text, fatal: bool, ignore_bom: bool) -> Result<Function<'js>> {
    let encoding = Encoding::for_label(label.0.as_bytes()).unwrap_or(encoding_rs::UTF_8);
    let decoder = if ignore_bom {
        encoding.new_decoder_without_bom_handling()
    } else {
        encoding.new_decoder_with_bom_removal()
    };
    let decoder = RefCell::new(decoder);
    Function::new(ctx, move |bytes: TypedArray<'js, u8>, last: bool| -> Option<String> {
        // SAFETY: no code runs and nothing detaches the buffer while the slice is read.
        let bytes = unsafe { bytes.as_bytes() }.unwrap_or_default();
        let mut decoder = decoder.borrow_mut();
        let longest = decoder.max_utf8_buffer_length(bytes.len())?;
        let mut text = String::with_capacity(longest);
        if fatal {
            let (result, _) = decoder.decode_to_string_without_replacement(bytes, &mut text, last);
            matches!(result, DecoderResult::InputEmpty).then_some(text)
        } else {
            let _ = decoder.decode_to_string(bytes, &mut text, last);
            Some(text)
        }
    })
}

fn random<'js>(ctx: Ctx<'js>, length: usize) -> Result<TypedArray<'js, u8>> {
    let mut bytes = vec![0_u8; length];
    let mut filled = 0;
    while filled < length {
        filled += rustix::rand::getrandom(&mut bytes[filled..], rustix::rand::GetRandomFlags::empty())
            .map_err(|error| Exception::throw_message(&ctx, &format!("no random numbers: {error}")))?;
    }
    TypedArray::new_copy(ctx, bytes)
}
