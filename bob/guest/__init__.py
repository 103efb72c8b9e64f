"""Guests: virtual machines that bob boots, talks to, loses and ends.

spec         what a guest should be: image, clock, memory, accelerator
hypervisor   hands out guests, restored from a saved state or booted; capacity: how many fit
machine      one running guest
domain_xml   the guest as libvirt and QEMU see it
network      between bob and one guest, and no other machine
saved        the saved states; accelerator: KVM or TCG, found out by booting
shell        SSH: commands, files; stream: a command as raw bytes
given        a machine that bob did not boot, by SSH; domain: one that some libvirt has
loss         a lost guest, and why; console: what it printed
driver       libvirt, quiet; root: the folder that bob's own libvirt lives in
reaper       ends what bob started when bob ends; reap: the process that does it
(what runs in a guest is in bob/agent/)
"""
