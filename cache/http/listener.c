#include "cache/http/listener.h"

#include <arpa/inet.h>
#include <netinet/in.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/scope.h"

#define LISTENS 0x0a

/* An address of a table: groups of 8 digits, each a word as it is in memory. */
static bool parse_address(const char *text, size_t words, struct in6_addr *ret)
{
    uint32_t word[4] = {0};

    for (size_t i = 0; i < words; i++) {
        char digits[9], *end;

        memcpy(digits, text + 8 * i, 8);
        digits[8] = '\0';
        word[i] = (uint32_t)strtoul(digits, &end, 16);
        if (*end || end != digits + 8)
            return false;
    }
    if (words == 4) {
        memcpy(ret, word, sizeof(*ret));
    } else { /* as one of IPv6 */
        memset(ret, 0, sizeof(*ret));
        ret->s6_addr[10] = ret->s6_addr[11] = 0xff;
        memcpy(ret->s6_addr + 12, word, 4);
    }
    return true;
}

static bool address_of(const struct sockaddr *address, struct in6_addr *ret, unsigned *ret_port)
{
    if (address->sa_family == AF_INET) {
        const struct sockaddr_in *in = (const struct sockaddr_in *)address;

        memset(ret, 0, sizeof(*ret));
        ret->s6_addr[10] = ret->s6_addr[11] = 0xff;
        memcpy(ret->s6_addr + 12, &in->sin_addr, 4);
        *ret_port = ntohs(in->sin_port);
        return true;
    }
    if (address->sa_family == AF_INET6) {
        const struct sockaddr_in6 *in = (const struct sockaddr_in6 *)address;

        *ret = in->sin6_addr;
        *ret_port = ntohs(in->sin6_port);
        return true;
    }
    return false;
}

static bool is_any(const struct in6_addr *address)
{
    static const uint8_t any4[16] = {[10] = 0xff, [11] = 0xff};

    return IN6_IS_ADDR_UNSPECIFIED(address) || memcmp(address, any4, sizeof(any4)) == 0;
}

bool listener_line(const char *line, const struct sockaddr *address, uid_t *ret_uid)
{
    char local[33] = "", remote[33] = "";
    unsigned port, remote_port, state, uid, want_port;
    struct in6_addr found, want;
    size_t len;

    if (sscanf(line,
               " %*u: %32[0-9A-Fa-f]:%4x %32[0-9A-Fa-f]:%4x %2x %*8[0-9A-Fa-f]:%*8[0-9A-Fa-f] "
               "%*2x:%*8[0-9A-Fa-f] %*8[0-9A-Fa-f] %10u",
               local, &port, remote, &remote_port, &state, &uid) != 6)
        return false;
    len = strlen(local);
    if (state != LISTENS || (len != 8 && len != 32) || !parse_address(local, len / 8, &found) ||
        !address_of(address, &want, &want_port) || port != want_port ||
        (!is_any(&found) && memcmp(&found, &want, sizeof(want)) != 0))
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
static bool look(const char *table, const struct sockaddr *address, const uid_t *users, size_t n,
                 unsigned *ret_ours, bool *ret_other, uid_t *ret_uid)
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
    bool can = look("/proc/net/tcp", address, users, n, &ours, &other, ret_uid);

    if (!ours && !other) /* the kernel looks through all sockets of IPv4, too, to find none here */
        can = look("/proc/net/tcp6", address, users, n, &ours, &other, ret_uid) || can;
    return !can || (ours && !other);
}
