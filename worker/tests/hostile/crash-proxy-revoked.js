// expect: thrown TypeError
const { proxy, revoke } = Proxy.revocable({}, {}); revoke(); return proxy
