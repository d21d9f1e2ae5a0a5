/* Whether the front of the ring is used, its secret, and what the ring calls files. */
#include "cache/http/via.h"

#include <arpa/inet.h>
#include <errno.h>
#include <inttypes.h>
#include <netinet/in.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/checked.h"
#include "base/clock.h"
#include "base/scope.h"
#include "base/text.h"
#include "cache/disk/local_file.h"
#include "cache/disk/sha256.h"
#include "cache/http/parts.h"

#define RETRY_NS     INT64_C(2000000000)
#define SECRET_LEAST 16
#define SECRET_MOST  256
#define FAILED_TEXT  "peers: %s: %s; the origin is asked in their place"

/* ---- making ---- */

/* Read the secret of the ring: one line of printable characters. */
static int read_secret(const char *path, char **ret, uid_t *ret_owner, struct diag *d)
{
    AUTO_SECRET struct text text = {0};
    struct stat st;
    int r = file_read_whole(path, SECRET_MOST + 1, &text, &st);
    size_t len = text.len;

    if (r < 0 && r != -EFBIG)
        return diag_set(d, r, "peers_secret=%s: %s", path,
                        r == -EINVAL ? "expected a file, got something else" : strerror(-r));
    if (st.st_mode & 077)
        return diag_set(
            d, -EACCES,
            "peers_secret=%s: expected a file that only its owner can read (mode 600), got "
            "mode %o",
            path, st.st_mode & 0777);
    *ret_owner = st.st_uid;
    len -= len && text.data[len - 1] == '\n';
    for (size_t i = 0; i < len; i++)
        if (text.data[i] <= ' ' || text.data[i] > '~')
            len = 0;
    if (len < SECRET_LEAST || len > SECRET_MOST)
        return diag_set(
            d, -EINVAL,
            "peers_secret=%s: expected one line of %d to %d letters and digits, got another "
            "text",
            path, SECRET_LEAST, SECRET_MOST);
    return text_print(ret, "X-Epochfs-Secret: %.*s", (int)len, text.data);
}

int http_via_init(struct http_via *ret, const char *url, const char *secret_file, struct diag *d)
{
    *ret = (struct http_via){.users = {0, geteuid(), geteuid()}};
    lock_init(&ret->lock);
    if (!url)
        return 0;
    ret->url = strdup(url);
    if (!ret->url)
        return -ENOMEM;
    for (size_t len = strlen(ret->url); len && ret->url[len - 1] == '/'; len--)
        ret->url[len - 1] = '\0';
    return secret_file ? read_secret(secret_file, &ret->secret, &ret->users[2], d) : 0;
}

void http_via_release(struct http_via *via)
{
    free(via->url);
    secret_free(&via->secret);
    lock_release(&via->lock);
}

/* ---- what the ring calls a file ---- */

/* Does a parameter of a query belong to a signature? Such ones differ from one day to the next for
 * the same file, and are secrets. */
static bool signs(const char *parameter, size_t len)
{
    static const char *const beginnings[] = {"X-Amz-", "X-Goog-"};
    static const char *const names[] = {"AWSAccessKeyId", "GoogleAccessId", "Signature", "Expires",
                                        "Policy",         "Key-Pair-Id",    "sig"};

    for (size_t i = 0; i < ARRAY_LEN(beginnings); i++)
        if (strncasecmp(parameter, beginnings[i], strlen(beginnings[i])) == 0)
            return true;
    for (size_t i = 0; i < ARRAY_LEN(names); i++)
        if (len == strlen(names[i]) && strncasecmp(parameter, names[i], len) == 0)
            return true;
    return false;
}

static void add_query(struct text *t, const char *query)
{
    while (*query) {
        size_t len = strcspn(query, "&"), name = strcspn(query, "=&");

        if (!signs(query, name)) {
            text_add(t, "\n");
            text_add_bytes(t, query, len);
        }
        query += len + (query[len] == '&');
    }
}

int http_via_key(const char *origin, const char *url, char ret[static HTTP_KEY_SIZE])
{
    AUTO_TEXT struct text t = {0};
    const char *host = strstr(url, "://"), *path;
    size_t len;

    path = host ? host + 3 + strcspn(host + 3, "/?#") : url;
    len = strcspn(path, "?#");
    text_add(&t, "%s\n", origin);
    text_add_bytes(&t, path, len);
    if (path[len] == '?')
        add_query(&t, path + len + 1);
    return t.failed ? -ENOMEM : digest_text_of(t.data, t.len, ret);
}

/* ---- up and down ---- */

void http_via_trouble(struct http *http, const char *why)
{
    struct http_via *via = &http->via;
    int64_t now = clock_monotonic(http->clock);
    void (*changed)(bool answers, const char *text);
    char text[TRANSPORT_WHY_SIZE + 200];

    if (why && via->is_strange)
        why = "its port is another user's";
    lock_take(&via->lock);
    if (!why && (!via->failed || now - via->failed_ns < RETRY_NS)) {
        lock_drop(&via->lock);
        return;
    }
    changed = via->failed != (why != NULL) ? via->changed : NULL;
    via->failed = why != NULL;
    via->failed_ns = now;
    snprintf(via->why, sizeof(via->why), "%s", why ? why : "");
    lock_drop(&via->lock);
    if (why)
        snprintf(text, sizeof(text), FAILED_TEXT, via->url, why);
    else
        snprintf(text, sizeof(text), "peers: %s: it answers again", via->url);
    if (changed)
        changed(!why, text);
}

void http_via_rest(struct http *http, const char *why)
{
    http->via.down = true;
    http->via.retry_ns = clock_monotonic(http->clock) + RETRY_NS;
    http_via_trouble(http, why);
}

void http_via_fail(struct http *http, const char *why)
{
    http->via.lost = true;
    http_via_rest(http, why);
}

bool http_via_is_up(struct http *http)
{
    struct http_via *via = &http->via;

    if (via->down && clock_monotonic(http->clock) >= via->retry_ns)
        via->wants_probe = true;
    return !via->down;
}

bool http_via_may_ask(struct http *http, const struct sockaddr *address)
{
    struct http_via *via = &http->via;
    uid_t other = via->users[0];
    bool may = listener_is_of(address, via->users, ARRAY_LEN(via->users), &other);

    via->is_strange = !may && other != via->users[0];
    return may;
}

static struct http_member *member_find(struct http_via *via, const char *name)
{
    for (size_t i = 0; i < HTTP_MEMBERS && name[0]; i++)
        if (strcmp(via->member[i].name, name) == 0)
            return &via->member[i];
    return NULL;
}

void http_via_hear(struct http *http, const char *name)
{
    struct http_via *via = &http->via;
    struct http_member *member = member_find(via, name);

    if (!name[0])
        return;
    if (!member) {
        member = &via->member[via->next_member++ % HTTP_MEMBERS];
        snprintf(member->name, sizeof(member->name), "%s", name);
    }
    member->heard_ns = clock_monotonic(http->clock);
}

int64_t http_via_heard(struct http *http, const char *name)
{
    const struct http_member *member = member_find(&http->via, name);

    return member ? member->heard_ns : 0;
}

/* ---- reports, any thread ---- */

bool http_via_peers(struct transport *transport, struct transport_peers *ret)
{
    struct http_via *via = &http_of(transport)->via;

    if (!via->url)
        return false;
    *ret = (struct transport_peers){.url = via->url, .bytes = atomic_load(&via->bytes)};
    LOCK_SCOPE(&via->lock);

    ret->answer = !via->failed;
    snprintf(ret->why, sizeof(ret->why), "%s", via->why);
    return true;
}

void http_via_listen(struct http *http, void (*changed)(bool answers, const char *text))
{
    struct http_via *via = &http->via;
    char text[TRANSPORT_WHY_SIZE + 200];
    bool failed;

    lock_take(&via->lock);
    via->changed = changed;
    failed = changed && via->failed;
    snprintf(text, sizeof(text), FAILED_TEXT, via->url ? via->url : "", via->why);
    lock_drop(&via->lock);
    if (failed)
        changed(false, text);
}

/* ---- who listens ---- */

#define LISTENS 0x0a

/* The address as the table of IPv6 has it: four words of 8 digits, each as it is in memory. */
static bool print_address(const struct sockaddr *address, char ret[static 33], unsigned *ret_port)
{
    const struct sockaddr_in *v4 = (const struct sockaddr_in *)address;
    const struct sockaddr_in6 *v6 = (const struct sockaddr_in6 *)address;
    uint32_t word[4] = {0, 0, htonl(0xffff)};

    if (address->sa_family == AF_INET)
        memcpy(&word[3], &v4->sin_addr, sizeof(word[3]));
    else if (address->sa_family == AF_INET6)
        memcpy(word, &v6->sin6_addr, sizeof(word));
    else
        return false;
    *ret_port = ntohs(address->sa_family == AF_INET ? v4->sin_port : v6->sin6_port);
    for (size_t i = 0; i < 4; i++)
        snprintf(ret + 8 * i, 9, "%08X", word[i]);
    return true;
}

bool listener_line(const char *line, const struct sockaddr *address, uid_t *ret_uid)
{
    char mapped[25], found[57], sought[33], local[33] = "";
    unsigned port, state, uid, want_port;
    const char *at = found;

    if (sscanf(line,
               " %*u: %32[0-9A-Fa-f]:%4x %*32[0-9A-Fa-f]:%*4x %2x %*8[0-9A-Fa-f]:%*8[0-9A-Fa-f] "
               "%*2x:%*8[0-9A-Fa-f] %*8[0-9A-Fa-f] %10u",
               local, &port, &state, &uid) != 4 ||
        state != LISTENS || (strlen(local) != 8 && strlen(local) != 32) ||
        !print_address(address, sought, &want_port) || port != want_port)
        return false;
    snprintf(mapped, sizeof(mapped), "%016X%08X", 0u, htonl(0xffff)); /* an address of IPv4 */
    snprintf(found, sizeof(found), "%s%s", local[8] ? "" : mapped, local);
    if (!strncasecmp(found, mapped, strlen(mapped)))
        at += strlen(mapped);
    if (at[strspn(at, "0")] && strcasecmp(found, sought) != 0) /* all zeros: on all addresses */
        return false;
    *ret_uid = (uid_t)uid;
    return true;
}

static bool is_among(uid_t user, const uid_t *users, size_t n)
{
    for (size_t i = 0; i < n; i++)
        if (users[i] == user)
            return true;
    return false;
}

/* Is it a line of a socket that does not listen? */
static bool is_of_another_state(const char *line)
{
    unsigned state;

    return sscanf(line, " %*u: %*[0-9A-Fa-f:] %*[0-9A-Fa-f:] %2x", &state) == 1 && state != LISTENS;
}

/* Look at one table. Sockets that listen come first; of others there may be tens of thousands,
 * which are not read. false: it cannot be read. */
static bool via_look(const char *table, const struct sockaddr *address, const uid_t *users,
                     size_t n, unsigned *ret_ours, bool *ret_other, uid_t *ret_uid)
{
    AUTO_FREE char *line = NULL;
    FILE *f = fopen(table, "re");
    size_t capacity = 0;
    uid_t user;

    if (!f)
        return false;
    while (getline(&line, &capacity, f) > 0 && !is_of_another_state(line)) {
        if (!listener_line(line, address, &user))
            continue;
        if (is_among(user, users, n)) {
            ++*ret_ours;
        } else {
            *ret_other = true;
            *ret_uid = user;
        }
    }
    fclose(f);
    return true;
}

bool listener_is_of(const struct sockaddr *address, const uid_t *users, size_t n, uid_t *ret_uid)
{
    unsigned ours = 0;
    bool other = false;
    bool can = via_look("/proc/net/tcp", address, users, n, &ours, &other, ret_uid);

    if (!ours && !other) /* the kernel looks through all sockets of IPv4 to find none here */
        can = via_look("/proc/net/tcp6", address, users, n, &ours, &other, ret_uid) || can;
    return !can || (ours && !other);
}
