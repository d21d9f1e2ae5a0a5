/* The names come from the manuals of mount(8), rclone mount, s3fs, goofys, gcsfuse, JuiceFS,
 * mountpoint-s3, the AWS command line and Python loaders of datasets. */
#include "fs/options/other_tools.h"

#include <stdbool.h>
#include <stddef.h>
#include <string.h>

#include "base/scope.h"

static const struct {
    const char *names; /* separated by spaces */
    const char *fix;
} other_tools_rows[] = {
    {"cachedir use_cache vfs_cache_dir cache_path cache_location", "Use cache_dir=DIR"},
    {"vfs_cache_max_size max_cache_size cache_max_size cache_limit cache_quota "
     "file_cache_max_size_mb max_size_mb cache_file_size free_space_ratio ensure_diskfree max_size",
     "Use cache_size=SIZE, for example cache_size=100G"},
    {"vfs_cache_mode cache_mode vfs_cache_max_age cache_expire cache_eviction eviction "
     "del_cache cache_policy cache_mode_policy",
     "Use evict=never, evict=after_use or evict=plan: which bytes the cache drops"},
    {"no_cache nocache cache_none disable_cache direct_io",
     "Local paths are read in place without cache_dir=; URLs always use the cache"},
    {"public_bucket anonymous_access no_auth unsigned public allow_anonymous",
     "Use no_sign_request: S3 requests without a signature"},
    {"url host s3_endpoint s3_endpoint_url", "Use endpoint_url=URL"},
    {"default_region aws_region s3_region region_name", "Use region=NAME"},
    {"aws_profile profile_name", "Use profile=NAME"},
    {"addressing_style use_path_request_style force_path_style path_style s3_force_path_style",
     "Paths have the bucket by default; virtual_host puts it into the host's name"},
    {"iam_role role_arn role sts_endpoint assume_role",
     "Roles come from the environment, as with the AWS tools; profile=NAME names one of "
     "~/.aws/config"},
    {"request_payer billing_project",
     "Use requester_pays: requests to the bucket are charged to your account"},
    {"cacert ca_file ssl_ca cert", "Use ca_cert=FILE"},
    {"insecure no_check_certificate no_verify_ssl skip_ssl_verify no_tls_verify",
     "Servers are always verified; ca_cert=FILE adds a certificate to trust"},
    {"parallel_count multireq_max max_threads threads workers num_workers concurrency "
     "max_conns_per_host max_concurrent_requests max_downloads checkers connections parallel",
     "Use transfers=N: transfers at once"},
    {"bandwidth download_limit limit_rate max_bandwidth limit_bytes_per_sec "
     "maximum_throughput_gbps",
     "Use bwlimit=SIZE: bytes per second in the background"},
    {"retries low_level_retries max_retry_attempts max_attempts max_retry_sleep io_retries "
     "max_retries "
     "max_retry_duration",
     "Use retry_timeout=N: seconds that a read waits for a remote that fails"},
    {"cli_read_timeout cli_connect_timeout connect_timeout readwrite_timeout contimeout "
     "http_timeout read_timeout",
     "Use timeout=N: seconds without a byte before a request is given up"},
    {"preload stage_all warmup readahead_stage no_prefetch",
     "Use prefetch=on (everything, in the background) or prefetch=off (only what is read)"},
    {"read_ahead vfs_read_ahead max_readahead buffer_size vfs_read_chunk_size "
     "sequential_read_size_mb",
     "Use readahead=SIZE: what is made before a plan's reader asks for it"},
    {"bs read_part_size chunk_size multipart_size part_size cache_block_size",
     "Use block_size=SIZE"},
    {"uid gid user_id group_id umask mode file_mode dir_mode fmask dmask file_perms dir_perms "
     "mp_umask",
     "Files belong to the user that mounts them, and are read-only; allow_other lets others read"},
    {"nonempty allow_non_empty", "A mountpoint must be empty"},
    {"foreground daemon background",
     "Use -f before the source: epochfs mount -f SOURCE MOUNTPOINT"},
    {"debug_http debug_s3 debug_fuse dbglevel curldbg verbose quiet loglevel "
     "log_severity",
     "Use log_level=error, log_level=warning, log_level=info or log_level=debug"},
    {"attr_timeout entry_timeout negative_timeout ac_attr_timeout stat_cache_ttl type_cache_ttl "
     "stat_cache_expire max_stat_cache_size metadata_ttl metadata_cache_ttl_secs metacache "
     "open_cache dir_cache_time "
     "poll_interval attr_cache entry_cache dir_entry_cache",
     "A mount never changes, so names and attributes are cached as long as it lives"},
    {"kernel_cache auto_cache max_read max_write big_writes noforget splice_read writeback "
     "writeback_cache vfs_write_back clone_fd max_idle_threads",
     "Omit it: epochfs sets what the kernel needs"},
    {"upload_limit writeback_mode storage_class sse server_side_encryption allow_delete "
     "allow_overwrite incremental_upload upload_checksums nomultipart use_sse acl default_acl",
     "Omit it: epochfs writes nothing to the source"},
    {"log_file log_directory log_format syslog",
     "Messages go to syslog, or with epochfs mount -f to the terminal"},
    {"transfer_acceleration use_accelerate_endpoint dual_stack use_dualstack_endpoint",
     "Use endpoint_url=URL with the host name of that endpoint"},
    {"temp_dir tmp_dir tmpdir scratch_dir", "Use cache_dir=DIR"},
    {"config config_file rclone_config",
     "Give each setting as an option; see epochfs mount --help all"},
    {"remount bind rbind loop", "Unmount with epochfs umount, then mount again"},
    {"read_only readonly vfs_read_only", "Omit it: a mount is always read-only"},
    {"prefix only_dir bucket subdir implicit_dirs", "Put it into the source: s3://BUCKET/PREFIX"},
    {"batch_size batchsize", "Use plan=batch=N"},
    {"world_size num_replicas num_shards local_rank",
     "Use rank=KofN in a plan: plan=batch=64+rank=0of4"},
    {"drop_last", "Use tail=drop in a plan: plan=batch=64+tail=drop"},
    {"shuffle_buffer shuffle_buffer_size shuffle_block_size",
     "Use shuffle=window:M in a plan: plan=batch=64+seed=1+shuffle=window:1000"},
    {"resize img_size image_shape size", "Use image_size=HxW"},
    {"sequence_length seq_length block_len context_length max_length", "Use seq_len=N"},
    {"sep", "Use csv_delimiter=CHAR"},
    {"tokens_dtype token_type", "Use token_dtype=TYPE"},
    {"skip_errors ignore_errors error_mode", "Use on_error=fail, on_error=skip or on_error=zero"},
    {"num_classes n_classes", "Use one_hot=N"},
    {"label_col label_key target target_column y", "Use label=FIELD"},
};

const char *other_tools_option(const char *name)
{
    size_t len = strlen(name);

    for (size_t i = 0; i < ARRAY_LEN(other_tools_rows); i++)
        for (const char *at = other_tools_rows[i].names; *at; at += *at == ' ') {
            size_t n = strcspn(at, " ");

            if (n == len && !memcmp(at, name, n))
                return other_tools_rows[i].fix;
            at += n;
        }
    return NULL;
}
