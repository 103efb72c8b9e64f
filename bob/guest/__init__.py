"""Guests: virtual machines that bob boots, talks to, loses and ends.

spec the guest that is wanted: image, clock, memory, accelerator hypervisor hands out guests, restored from a saved
state or booted; capacity: how many fit machine one running guest; domain_xml: its description for libvirt and QEMU
network between bob and one guest; port: a way past it saved_guest the saved states; accelerator: KVM or TCG, by a trial
boot shell SSH: commands, files; stream: a command as raw bytes given_machine a machine that bob did not boot, by SSH;
domain: one of a libvirt console a guest's output, and why the guest was lost driver libvirt, quiet; root: the folder of
bob's own libvirt reaper ends guests when bob ends; reap: the process that does it
"""
