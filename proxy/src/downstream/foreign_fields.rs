//! Fields of other clients' `mcpServers` that mean nothing to the proxy, each with what to do instead.

const APPROVAL: &str = "ignored: which calls a person has to approve is up to your client";
const LOGIN: &str = "ignored: the proxy doesn't log in by itself. Put a token into \"headers\", or use a bridge that logs in: \
     \"command\": \"npx\", \"args\": [\"-y\", \"mcp-remote\", the URL]";
const SANDBOX: &str = "ignored: the proxy starts servers without a sandbox";
const WATCHING: &str = "ignored: the proxy doesn't restart servers when files change";
const DISPLAY: &str = "ignored: it is for display only";
const EXTENSION: &str =
    "ignored: settings of a Zed extension; give the server's \"command\" and \"env\" instead";
const ALWAYS: &str =
    "ignored: tools are listed from the first use on; \"eager\": true starts the server with the proxy";

/// The fields, and why they are ignored.
const FOREIGN: [(&str, &str); 33] = [
    ("alwaysAllow", APPROVAL),
    ("autoApprove", APPROVAL),
    ("trust", APPROVAL),
    ("trusted", APPROVAL),
    ("auth", LOGIN),
    ("authentication", LOGIN),
    ("authorization", LOGIN),
    ("authProviderType", LOGIN),
    ("headersHelper", LOGIN),
    ("oauth", LOGIN),
    ("targetAudience", LOGIN),
    ("targetServiceAccount", LOGIN),
    ("sandbox", SANDBOX),
    ("sandboxEnabled", SANDBOX),
    ("dev", WATCHING),
    ("watchPaths", WATCHING),
    ("alwaysLoad", ALWAYS),
    ("start_on_launch", ALWAYS),
    ("settings", EXTENSION),
    ("description", DISPLAY),
    ("gallery", DISPLAY),
    ("icon", DISPLAY),
    ("iconPath", DISPLAY),
    ("id", DISPLAY),
    ("logoUrl", DISPLAY),
    ("name", DISPLAY),
    ("provider", DISPLAY),
    ("providerUrl", DISPLAY),
    ("registryUrl", DISPLAY),
    ("remote", DISPLAY),
    ("source", DISPLAY),
    ("tags", DISPLAY),
    ("version", DISPLAY),
];

/// Why a field that the proxy doesn't read is ignored.
pub(super) fn explanation(field: &str) -> &'static str {
    FOREIGN.iter().find(|(name, _)| *name == field).map_or("unknown, ignored", |(_, why)| why)
}
