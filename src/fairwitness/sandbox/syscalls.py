"""System call numbers per architecture, for the calls that are refused or watched.

x86_64 is tested; aarch64 was written from the kernel's table and has not been run. A `-` marks a call that an
architecture does not have.
"""

import functools
from collections.abc import Mapping

ARCHITECTURES = {"x86_64": 0xC000003E, "aarch64": 0xC00000B7}
"""The architecture constants that the kernel passes to a filter."""

_NAMES_X86_64_AARCH64 = """
open 2 -
creat 85 -
openat 257 56
openat2 437 437
truncate 76 45
rename 82 -
renameat 264 38
renameat2 316 276
mkdir 83 -
mkdirat 258 34
rmdir 84 -
unlink 87 -
unlinkat 263 35
link 86 -
linkat 265 37
symlink 88 -
symlinkat 266 36
mknod 133 -
mknodat 259 33
chmod 90 -
fchmod 91 52
fchmodat 268 53
fchmodat2 452 452
chown 92 -
fchown 93 55
lchown 94 -
fchownat 260 54
utime 132 -
utimes 235 -
futimesat 261 -
utimensat 280 88
setxattr 188 5
lsetxattr 189 6
fsetxattr 190 7
removexattr 197 14
lremovexattr 198 15
fremovexattr 199 16
setxattrat 463 463
removexattrat 466 466
file_setattr 469 469
socket 41 198
socketpair 53 199
ioctl 16 29
clone 56 220
clone3 435 435
unshare 272 97
setns 308 268
kill 62 129
tkill 200 130
tgkill 234 131
rt_sigqueueinfo 129 138
rt_tgsigqueueinfo 297 240
pidfd_open 434 434
pidfd_send_signal 424 424
pidfd_getfd 438 438
prlimit64 302 261
ptrace 101 117
process_vm_readv 310 270
process_vm_writev 311 271
process_madvise 440 440
kcmp 312 272
bpf 321 280
perf_event_open 298 241
userfaultfd 323 282
io_uring_setup 425 425
io_uring_enter 426 426
io_uring_register 427 427
add_key 248 217
request_key 249 218
keyctl 250 219
open_by_handle_at 304 265
fanotify_init 300 262
init_module 175 105
finit_module 313 273
delete_module 176 106
kexec_load 246 104
kexec_file_load 320 294
reboot 169 142
swapon 167 224
swapoff 168 225
syslog 103 116
acct 163 89
quotactl 179 60
quotactl_fd 443 443
settimeofday 164 170
clock_settime 227 112
sethostname 170 161
setdomainname 171 162
vhangup 153 58
iopl 172 -
ioperm 173 -
modify_ldt 154 -
uselib 134 -
mount 165 40
umount2 166 39
pivot_root 155 41
chroot 161 51
open_tree 428 428
move_mount 429 429
fsopen 430 430
fsconfig 431 431
fsmount 432 432
fspick 433 433
mount_setattr 442 442
open_tree_attr 467 467
seccomp 317 277
setpriority 141 140
sched_setaffinity 203 122
sched_setscheduler 144 119
sched_setparam 142 118
sched_setattr 314 274
ioprio_set 251 30
shmget 29 194
shmat 30 196
shmctl 31 195
semget 64 190
semop 65 193
semctl 66 191
semtimedop 220 192
msgget 68 186
msgsnd 69 189
msgrcv 70 188
msgctl 71 187
mq_open 240 180
mq_unlink 241 181
"""


@functools.cache
def numbers(machine: str) -> Mapping[str, int]:
    """Return the system call numbers of an architecture by name; empty for an unknown one."""
    columns = {"x86_64": 1, "aarch64": 2}
    if machine not in columns:
        return {}
    rows = (line.split() for line in _NAMES_X86_64_AARCH64.strip().splitlines())
    return {row[0]: int(row[columns[machine]]) for row in rows if row[columns[machine]] != "-"}
